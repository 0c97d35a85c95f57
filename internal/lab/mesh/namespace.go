package mesh

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// A network namespace without a name. It ends when the file is closed.
type namespace struct{ file *os.File }

func newNamespace() (*namespace, error) {
	n := &namespace{}
	return n, onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("making a network namespace: %w", err)
		}
		if n.file, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return fmt.Errorf("opening a new network namespace: %w", err)
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

// A socket that f opens, or a process that it starts, stays inside the namespace.
func (n *namespace) do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering a network namespace: %w", err)
		}
		return f()
	})
}

func (n *namespace) run(input, name string, args ...string) error {
	return n.do(func() error {
		cmd := exec.Command(name, args...) //nolint:noctx // it takes milliseconds, and half done would be worse
		cmd.Stdin = strings.NewReader(input)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("running %s %s: %w\n%s\nof\n%s", name, strings.Join(args, " "), err, out.String(), input)
		}
		return nil
	})
}

func (n *namespace) ip(lines []string) error { return n.batch("ip", "-batch", lines) }

func (n *namespace) bridge(lines []string) error { return n.batch("bridge", "-batch", lines) }

func (n *namespace) nft(lines ...string) error { return n.batch("nft", "-f", lines) }

func (n *namespace) batch(name, flag string, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	return n.run(strings.Join(lines, "\n")+"\n", name, flag, "-")
}

func (n *namespace) set(values map[string]string) error {
	return n.do(func() error {
		for name, value := range values {
			if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0o644); err != nil {
				return fmt.Errorf("setting %s in a network namespace: %w", name, err)
			}
		}
		return nil
	})
}

// With these settings a namespace forwards packets, on any path.
var router = map[string]string{"ipv4/ip_forward": "1", "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0"}

// A link's own address is usable at once, without a search for duplicates: the addresses are
// unique.
var router6 = map[string]string{"ipv6/conf/all/forwarding": "1", "ipv6/conf/all/accept_dad": "0", "ipv6/conf/default/accept_dad": "0"}
