//go:build unix

package providertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The port stays reserved until release is called, also after the listener is closed. So a client
// that still connects to it is refused, and does not reach a listener of another test.
func listen(t testing.TB) (l net.Listener, release func()) {
	t.Helper()
	// A socket that is bound and does not listen reserves its port.
	reserved, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	unix.CloseOnExec(reserved)
	require.NoError(t, shared(reserved))
	require.NoError(t, unix.Bind(reserved, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	at, err := unix.Getsockname(reserved)
	require.NoError(t, err)
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var set error
		err := c.Control(func(fd uintptr) { set = shared(int(fd)) })
		return errors.Join(err, set)
	}}
	l, err = config.Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port))
	require.NoError(t, err)
	return l, func() { _ = unix.Close(reserved) }
}

// Two sockets of this user may have the same port.
func shared(socket int) error {
	return unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
}
