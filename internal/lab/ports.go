package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Ports for client connections start at 32768 in the kernel. The lab's ports are below, because a
// connection could otherwise take a part's port before the part starts or restarts. Each process
// begins at a different port of the range.
const firstPort, portCount = 10000, 22000

var portsPicked atomic.Int64

// FreePort returns a loopback port that has no listener, and never the same port twice. Another
// process may still take the port before it is used.
func FreePort() (int, error) {
	var err error
	for range 1000 {
		port := firstPort + int((int64(os.Getpid())*101+portsPicked.Add(1))%portCount)
		var l net.Listener
		if l, err = net.Listen("tcp", address(port)); err == nil { //nolint:noctx // loopback does not block
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("picking a free port: %w", err)
}

func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for len(ports) < n {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports, nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func (l *Lab) startOnPorts(ctx context.Context, n int, spec func(ports []int) Spec) (*Process, []int, error) {
	return onFreePorts(n, func(ports []int) (*Process, string, error) {
		s := spec(ports)
		p, err := l.startPart(ctx, s)
		return p, l.logOf(s.Name), err
	})
}

// start returns the path of the part's log. If it shows that another program has taken a port
// first, other ports are tried.
func onFreePorts(n int, start func(ports []int) (p *Process, log string, err error)) (*Process, []int, error) {
	const attempts = 4
	for attempt := 1; ; attempt++ {
		ports, err := freePorts(n)
		if err != nil {
			return nil, nil, err
		}
		p, log, err := start(ports)
		if err == nil {
			return p, ports, nil
		}
		if attempt == attempts || !portTaken(log) {
			return nil, nil, err
		}
		// The log is removed, so that the next attempt does not read the failure of this one.
		if err := os.Remove(log); err != nil {
			return nil, nil, fmt.Errorf("removing a log: %w", err)
		}
	}
}

func portTaken(log string) bool { return strings.Contains(tail(log, 40), "address already in use") }
