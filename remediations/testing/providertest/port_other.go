//go:build !unix

package providertest

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// The port is free again when the listener is closed.
func listen(t testing.TB) (l net.Listener, release func()) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l, func() {}
}
