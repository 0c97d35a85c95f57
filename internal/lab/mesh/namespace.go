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

// namespace is a network namespace without a name. It ends with the file.
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

// onThread runs f on a thread that ends with it, so that no other code of this process runs where f
// has moved the thread. The first thread of a process cannot end, and /proc shows it for the whole
// process: f never runs there.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, except below
		if unix.Gettid() == unix.Getpid() {
			done <- onThread(f) // use another thread: this is the first one
			runtime.UnlockOSThread()
			return
		}
		done <- f()
	}()
	return <-done
}

func (n *namespace) close() { _ = n.file.Close() } // at worst the namespace ends with the process

// path is where other processes of this user find the namespace.
func (n *namespace) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// do runs f inside. A socket that f opens stays inside, wherever it is used later, and so does a
// process that f starts.
func (n *namespace) do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering a network namespace: %w", err)
		}
		return f()
	})
}

// run runs a program inside, with this input.
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

// ip, bridge and nft run several commands of these programs, up to the first failure.
func (n *namespace) ip(lines []string) error { return n.batch("ip", "-batch", lines) }

func (n *namespace) bridge(lines []string) error { return n.batch("bridge", "-batch", lines) }

func (n *namespace) nft(lines ...string) error { return n.batch("nft", "-f", lines) }

func (n *namespace) batch(name, flag string, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	return n.run(strings.Join(lines, "\n")+"\n", name, flag, "-")
}

// set writes the namespace's own values in /proc/sys/net.
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

// router forwards packets, on any path.
var router = map[string]string{"ipv4/ip_forward": "1", "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0"}

// router6 does the same for IPv6. The link's own address is usable at once: it is unique.
var router6 = map[string]string{"ipv6/conf/all/forwarding": "1", "ipv6/conf/all/accept_dad": "0", "ipv6/conf/default/accept_dad": "0"}
