package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// FreePort picks a loopback port that nobody listens on. Somebody else may
// take it before it is used.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback does not block
	if err != nil {
		return 0, fmt.Errorf("picking a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// freePorts picks n ports that differ.
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

// address is the loopback address of a port.
func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// startOnPorts starts a part on n free ports, and on others when a part of
// another lab was quicker to take one.
func (l *Lab) startOnPorts(ctx context.Context, n int, spec func(ports []int) Spec) (*Process, []int, error) {
	const attempts = 4
	for attempt := 1; ; attempt++ {
		ports, err := freePorts(n)
		if err != nil {
			return nil, nil, err
		}
		s := spec(ports)
		p, err := l.startPart(ctx, s)
		if err == nil {
			return p, ports, nil
		}
		if attempt == attempts || !strings.Contains(tail(s.Log, 40), "address already in use") {
			return nil, nil, err
		}
		// The next attempt must not read this one's failure.
		if err := os.Remove(s.Log); err != nil {
			return nil, nil, fmt.Errorf("removing the log of %s: %w", s.Name, err)
		}
	}
}
