package hosts

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// A network or mount namespace without a name. It ends when the file is closed.
type namespace struct {
	file *os.File
	flag int // CLONE_NEWNET or CLONE_NEWNS
}

func newNamespace(flag int) (*namespace, error) {
	n := &namespace{flag: flag}
	return n, onThread(func() (err error) {
		kind := "net"
		if flag == unix.CLONE_NEWNS {
			kind, flag = "mnt", flag|unix.CLONE_FS // CLONE_FS gives the thread its own root and working directory
		}
		if err := unix.Unshare(flag); err != nil {
			return fmt.Errorf("making a namespace (%s): %w", kind, err)
		}
		if kind == "mnt" {
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return fmt.Errorf("keeping the mounts of a namespace to itself: %w", err)
			}
		}
		if n.file, err = os.Open("/proc/thread-self/ns/" + kind); err != nil {
			return fmt.Errorf("opening a new namespace (%s): %w", kind, err)
		}
		return nil
	})
}

// The thread ends after f, so no other code of this process runs in the namespaces that f enters.
// It is never the first thread, because that cannot end, and /proc shows its namespaces for the
// whole process.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, except below
		if unix.Gettid() == unix.Getpid() {
			done <- onThread(f) // this is the first thread: run f on another one
			runtime.UnlockOSThread()
			return
		}
		done <- f()
	}()
	return <-done
}

func (n *namespace) close() { _ = n.file.Close() } // at worst the namespace ends with the process

func (n *namespace) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

func (n *namespace) do(f func() error) error {
	return onThread(func() error {
		if n.flag == unix.CLONE_NEWNS {
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return fmt.Errorf("entering a namespace: %w", err)
			}
		}
		if err := unix.Setns(int(n.file.Fd()), n.flag); err != nil {
			return fmt.Errorf("entering a namespace: %w", err)
		}
		return f()
	})
}

func (n *namespace) ip(lines ...string) error {
	return n.do(func() error { return ip(lines...) })
}

// ip runs the commands in this process's namespace.
func ip(lines ...string) error {
	cmd := exec.Command("ip", "-batch", "-") //nolint:noctx // it takes milliseconds, and half done would be worse
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running ip: %w\n%s\nof\n%s", err, out.String(), strings.Join(lines, "\n"))
	}
	return nil
}
