package probe

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDatagramsAreNotFragmented: neither questions nor answers. Otherwise a long question would
// pass on a path that drops long packets.
func TestDatagramsAreNotFragmented(t *testing.T) {
	probing := func(c any, level, option int) bool {
		raw, err := c.(syscall.Conn).SyscallConn()
		require.NoError(t, err)
		var value int
		require.NoError(t, raw.Control(func(fd uintptr) { value, err = syscall.GetsockoptInt(int(fd), level, option) }))
		require.NoError(t, err)
		return value == syscall.IP_PMTUDISC_PROBE
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for address, o := range map[string][2]int{
		"127.0.0.1": {syscall.IPPROTO_IP, syscall.IP_MTU_DISCOVER},
		"::1":       {syscall.IPPROTO_IPV6, syscall.IPV6_MTU_DISCOVER},
	} {
		conn, release, err := connect(ctx, "udp", netip.AddrPortFrom(netip.MustParseAddr(address), 9))
		require.NoError(t, err)
		require.True(t, probing(conn, o[0], o[1]), "asking from %s", address)
		release()

		s, err := NewServer(ServerOptions{Listen: net.JoinHostPort(address, "0")})
		require.NoError(t, err)
		streams, packets, err := s.listen(ctx)
		require.NoError(t, err)
		require.True(t, probing(packets[0], o[0], o[1]), "answering from %s", address)
		_ = streams[0].Close()
		_ = packets[0].Close()
	}
}
