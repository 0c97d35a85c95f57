package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const machineNetwork = "DRYDOCK_LAB_MACHINE_NETWORK"

// Machine is the network that this process was started in.
type Machine struct{ file *os.File }

// Apart moves this process into a network of its own, by executing its program again with the same
// arguments. What needs the machine's network, for example a download, must be done before.
func Apart() (*Machine, error) {
	fd, err := strconv.Atoi(os.Getenv(machineNetwork))
	if err != nil {
		return nil, execApart()
	}
	unix.CloseOnExec(fd)
	if err := os.Unsetenv(machineNetwork); err != nil {
		return nil, fmt.Errorf("entering a network of its own: %w", err)
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil { //nolint:noctx // it takes milliseconds
		return nil, fmt.Errorf("entering a network of its own: %w: %s", err, out)
	}
	return &Machine{os.NewFile(uintptr(fd), "the machine's network")}, nil
}

// It returns only if it fails. The thread that executes the program becomes the process, so the
// process gets the new network.
func execApart() error {
	runtime.LockOSThread() // not unlocked: the thread is not where others are
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("entering a network of its own: %w", err)
	}
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY, 0) // without O_CLOEXEC
	if err != nil {
		return fmt.Errorf("keeping the machine's network: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering a network of its own, which needs root: %w", err)
	}
	err = syscall.Exec(program, os.Args, append(os.Environ(), fmt.Sprintf("%s=%d", machineNetwork, fd)))
	return fmt.Errorf("entering a network of its own: %w", err)
}

// Listen listens in the machine's network.
func (m *Machine) Listen(ctx context.Context, address string) (listener net.Listener, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // not unlocked, so that the thread ends
		if err = unix.Setns(int(m.file.Fd()), unix.CLONE_NEWNET); err == nil {
			listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		}
	}()
	<-done
	if err != nil {
		return nil, fmt.Errorf("listening at %s of this machine: %w", address, err)
	}
	return listener, nil
}

func forward(listener net.Listener, to string) {
	for {
		from, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client has gone
		}
		go join(from, to)
	}
}

func join(from net.Conn, address string) {
	defer from.Close()
	to, err := net.Dial("tcp", address) //nolint:noctx // in this machine's memory it does not block
	if err != nil {
		return // the client sees the end of its connection
	}
	defer to.Close()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1]) // it ends with either connection
			if c, ok := pair[0].(*net.TCPConn); ok {
				_ = c.CloseWrite()
			}
		})
	}
	both.Wait()
}

// Close forgets the machine's network.
func (m *Machine) Close() { _ = m.file.Close() }

// Show makes an address of this process's network reachable at the same address of the machine, and
// returns the function that ends this.
func (m *Machine) Show(ctx context.Context, address string) (end func(), err error) {
	listener, err := m.Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	go forward(listener, address)
	return func() { _ = listener.Close() }, nil
}
