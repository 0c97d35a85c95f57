package lab

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// The kernel sends Pdeathsig to a child when the thread that started it ends, not when the process
// ends. Go may end threads at any time, so the thread that starts children must never end.
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

// The command is killed when this process ends. It does not receive Ctrl-C from the terminal,
// because the lab stops its processes itself.
func spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	spawner() <- func() { started <- cmd.Start() }
	return <-started
}
