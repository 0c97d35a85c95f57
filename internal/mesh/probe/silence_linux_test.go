package probe

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// loses makes the kernel drop TCP packets that are longer than the number of bytes, as if the path
// had lost them.
func loses(t *testing.T, c syscall.Conn, longer int) {
	t.Helper()
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_LEN},
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: uint32(longer), Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 16},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	}))
	require.NoError(t, err)
}

// mute is an endpoint that accepts TCP connections and datagrams, but answers nothing.
func mute(t *testing.T) (netip.AddrPort, *net.TCPListener) {
	t.Helper()
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u, err := net.ListenPacket("udp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close(); _ = u.Close() })
	return netip.MustParseAddrPort(l.Addr().String()), l.(*net.TCPListener)
}

// answering is an endpoint whose agent answers over TCP only.
func answering(t *testing.T) (netip.AddrPort, *net.TCPListener) {
	t.Helper()
	to, l := mute(t)
	s, err := NewServer(ServerOptions{Listen: "127.0.0.1:0", Node: "b", Keys: have(oldKey), Now: time.Now})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.serveStreams(ctx, l) // of a listener that is closed below
	}()
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		<-ended
		s.connections.closeAll()
		s.connections.wait()
	})
	return to, l
}

// TestALossyPathIsDistinguishedFromASilentAgent: over TCP, the kernel's acknowledgements show
// whether the path works. A packet of the handshake has at most 40 bytes with headers, and a short
// question 104.
func TestALossyPathIsDistinguishedFromASilentAgent(t *testing.T) {
	for name, c := range map[string]struct {
		agent func(*testing.T) (netip.AddrPort, *net.TCPListener)
		lost  int
		want  Outcome
		why   error
	}{
		"all passes":                        {answering, 1 << 16, OK, nil},
		"nothing passes":                    {answering, 0, Lost, nil},
		"a handshake passes, and no more":   {answering, 60, Lost, nil},
		"what is short passes":              {answering, 500, Lost, nil},
		"all passes, and the agent is mute": {mute, 1 << 16, NoResult, errMute},
		"a handshake, and it is mute":       {mute, 60, Lost, nil},
		"nothing passes, and it is mute":    {mute, 0, Lost, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, listener := c.agent(t)
			loses(t, listener, c.lost)
			w := awake(func() Result {
				return asker(func(o *Client) {
					if c.want != OK {
						unanswered(o)
					}
				}).Probe(t.Context(), TCP, to, "b")
			})
			require.Equal(t, c.want, w.Outcome, "%v", w.Why)
			if c.why != nil {
				require.ErrorIs(t, w.Why, c.why)
			}
		})
	}
}

// TestASilentAgentGivesNoResult: its endpoint exists, and it does not answer over UDP. Over
// TCP its kernel or the agent answers, so the probe shows nothing about the path. An endpoint that
// is silent on both counts as lost, whether or not it exists.
func TestASilentAgentGivesNoResult(t *testing.T) {
	skewed := func(c *Client) { c.Now = func() time.Time { return time.Now().Add(2 * maxAge) } }
	stranger := func(c *Client) { c.Keys = have(newKey) }
	agent := func(t *testing.T) netip.AddrPort { _, to := serve(t); return to }
	for name, c := range map[string]struct {
		to        func(*testing.T) netip.AddrPort
		change    func(*Client)
		tcp, udp  Outcome
		lonelyUDP Outcome // the result of UDP alone
	}{
		"it answers":           {agent, nil, OK, OK, OK},
		"it hangs":             {func(t *testing.T) netip.AddrPort { to, _ := mute(t); return to }, nil, NoResult, NoResult, Lost},
		"it has another clock": {agent, skewed, NoResult, NoResult, Lost},
		"it has another key":   {agent, stranger, NoResult, NoResult, Lost},
		"it answers as much as it may": {func(t *testing.T) netip.AddrPort {
			_, to := serve(t, func(o *ServerOptions) { o.Limits = Limits{PerSource: 0.1, Total: 0.1} })
			return to
		}, nil, NoResult, NoResult, Lost},
		"the way loses all": {func(t *testing.T) netip.AddrPort {
			to, l := mute(t)
			loses(t, l, 0)
			return to
		}, nil, Lost, Lost, Lost},
		"the way loses datagrams": {func(t *testing.T) netip.AddrPort {
			to, _ := answering(t)
			return to
		}, nil, OK, Lost, Lost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := c.to(t)
			change := []func(*Client){unanswered}
			if c.tcp == OK && c.udp == OK {
				change = nil
			}
			if c.change != nil {
				change = append(change, c.change)
			}
			ask := func(p Proto) Result {
				return awake(func() Result { return asker(change...).Probe(t.Context(), p, to, "b") })
			}
			tcp, alone := ask(TCP), ask(UDP)
			require.Equal(t, c.lonelyUDP, alone.Outcome, "%v", alone.Why)
			tcp, udp := Weigh(tcp, alone)
			require.Equal(t, []Outcome{c.tcp, c.udp}, []Outcome{tcp.Outcome, udp.Outcome}, fmt.Sprint(tcp.Why, "; ", udp.Why))
		})
	}
}
