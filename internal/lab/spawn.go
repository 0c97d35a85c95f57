package lab

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// spawner runs functions on one thread that never ends. The kernel sends
// Pdeathsig when the thread that forked ends, not the process, and Go ends
// threads as it likes: children started anywhere else could die at random.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// spawn starts the command so that it is killed when this process ends. It does not receive the
// terminal's Ctrl-C: the lab stops it in order.
func spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	spawner() <- func() { started <- cmd.Start() }
	return <-started
}
