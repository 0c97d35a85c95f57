package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAProbeComesBack(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "127.0.0.7:0", "[::1]:0", ":0"} {
		_, to := serve(t, func(o *ServerOptions) { o.Listen = listen })
		for _, p := range Protos() {
			t.Run(fmt.Sprint(listen, " ", p), func(t *testing.T) {
				w := asker().Probe(t.Context(), p, to, "b")
				require.NoError(t, w.Why)
				require.Equal(t, OK, w.Outcome)
				require.Positive(t, w.Took)
			})
		}
	}
}

// TestAllAddressesAnswer: on a machine with several addresses, an answer comes from the address
// that was asked, for IPv4 and IPv6.
func TestAllAddressesAnswer(t *testing.T) {
	s, _ := serve(t, func(o *ServerOptions) { o.Listen = ":0" })
	for _, address := range []string{"127.0.0.1", "127.0.0.9", "::1"} {
		for _, p := range Protos() {
			w := asker().Probe(t.Context(), p, netip.AddrPortFrom(netip.MustParseAddr(address), s.Port()), "b")
			require.NoError(t, w.Why, "%s over %s", address, p)
		}
	}
}

// TestEveryProbeIsANewFlow: a fault may affect only new flows.
func TestEveryProbeIsANewFlow(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	to := netip.MustParseAddrPort(l.Addr().String())
	u, err := net.ListenPacket("udp", l.Addr().String())
	require.NoError(t, err)
	defer u.Close()
	ports := map[string]bool{}
	for range 5 {
		go asker(func(c *Client) { c.Timeout = time.Minute }).Probe(t.Context(), TCP, to, "b") // until the connection is closed
		c, err := l.Accept()
		require.NoError(t, err)
		ports["tcp "+c.RemoteAddr().String()] = true
		_ = c.Close()
	}
	last, err := net.Dial("udp", l.Addr().String())
	require.NoError(t, err)
	defer last.Close()
	for n := 0; n < 5; {
		asker(brief).Probe(t.Context(), UDP, to, "b")
		_, err := last.Write([]byte("no more")) // on a busy machine, a question may be repeated
		require.NoError(t, err)
		asked := false // a probe that ended before it sent a question does not count
		for {
			_, from, err := u.ReadFrom(make([]byte, MaxSize))
			require.NoError(t, err)
			if from.String() == last.LocalAddr().String() {
				break
			}
			ports["udp "+from.String()], asked = true, true
		}
		if asked {
			n++
		}
	}
	require.Len(t, ports, 10)
}

// TestOnlySilenceIsALoss: if the other side answers anything, the path works. A fault on this side
// shows nothing about the path.
func TestOnlySilenceIsALoss(t *testing.T) {
	_, agent := serve(t)
	_, another := serve(t, func(o *ServerOptions) { o.Node = "another" })
	hole := blackHole(t, nil)
	closed := hangUp(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		to     netip.AddrPort
		ctx    context.Context
		change func(*Client)
		want   Outcome
		why    error
		protos []Proto
	}{
		"an agent":                        {to: agent, want: OK},
		"nobody answers":                  {to: hole, want: Lost, protos: []Proto{UDP}},
		"it was let in, and not answered": {to: hole, want: NoResult, why: errMute, protos: []Proto{TCP}},
		"no route":                        {to: netip.MustParseAddrPort("255.255.255.255:9"), want: Lost, protos: []Proto{TCP}},
		"nobody listens":                  {to: netip.MustParseAddrPort("127.0.0.1:1"), want: NoResult},
		"it hangs up":                     {to: closed, want: NoResult, protos: []Proto{TCP}},
		"another node's agent answers":    {to: another, want: NoResult, why: errAnother},
		"a stranger's key, over TCP":      {to: agent, want: NoResult, change: func(c *Client) { c.Keys = have(newKey) }, protos: []Proto{TCP}},
		"a payload longer than the frame": {to: agent, want: OK, change: func(c *Client) { c.Payload = MaxSize }},
		"no random bytes":                 {to: agent, want: NoResult, why: errNoNonce, change: func(c *Client) { c.Rand = iotest.ErrReader(errors.New("dry")) }},
		"this process did not run": {to: hole, want: NoResult, why: errOverslept, change: func(c *Client) {
			c.Rand = readerFunc(func(b []byte) (int, error) { time.Sleep(c.Timeout + 2*overslept); return len(b), nil })
		}},
		"we were told to stop": {to: hole, ctx: ended, want: NoResult},
	} {
		if c.protos == nil {
			c.protos = Protos()
		}
		if c.ctx == nil {
			c.ctx = t.Context()
		}
		for _, p := range c.protos {
			t.Run(name+" "+string(p), func(t *testing.T) {
				t.Parallel()
				change := []func(*Client){unanswered}
				if c.want == OK {
					change = nil
				}
				if c.change != nil {
					change = append(change, c.change)
				}
				ask := func() Result { return asker(change...).Probe(c.ctx, p, c.to, "b") }
				if !errors.Is(c.why, errOverslept) {
					once := ask
					ask = func() Result { return awake(once) }
				}
				w := ask()
				require.Equal(t, c.want, w.Outcome, "%v", w.Why)
				if c.why != nil {
					require.ErrorIs(t, w.Why, c.why)
				}
			})
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// blackHole is an agent that answers only questions of the lengths that pass allows. Nil: it
// answers none.
func blackHole(t *testing.T, pass func(length int) bool) netip.AddrPort {
	t.Helper()
	s, err := NewServer(ServerOptions{Listen: "127.0.0.1:0", Node: "b", Keys: have(oldKey), Now: time.Now})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u, err := net.ListenPacket("udp", l.Addr().String())
	require.NoError(t, err)
	reply := func(b []byte, from net.Addr) []byte {
		q, k, err := openWhole(b, have(oldKey)())
		if err != nil || pass == nil || !pass(len(b)) {
			return nil
		}
		return s.answer(q, k, netip.MustParseAddrPort(from.String()).Addr())
	}
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(ctx, func() { _ = c.Close() })
			running.Go(func() {
				b := make([]byte, MaxSize)
				for {
					n, err := c.Read(b)
					if err != nil {
						return
					}
					_, _ = c.Write(reply(b[:n], c.RemoteAddr()))
				}
			})
		}
	})
	running.Go(func() {
		b := make([]byte, MaxSize)
		for {
			n, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			if a := reply(b[:n], from); a != nil {
				_, _ = u.WriteTo(a, from)
			}
		}
	})
	t.Cleanup(func() { cancel(); _ = l.Close(); _ = u.Close(); running.Wait() })
	return netip.MustParseAddrPort(l.Addr().String())
}

func hangUp(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); running.Wait() })
	return netip.MustParseAddrPort(l.Addr().String())
}

// TestALongPayloadMustComeBackToo: a path that forwards only small packets is faulty.
func TestALongPayloadMustComeBackToo(t *testing.T) {
	t.Parallel()
	hole := blackHole(t, func(length int) bool { return length < 500 })
	for _, p := range Protos() {
		require.Equal(t, Lost, awake(func() Result { return asker(unanswered).Probe(t.Context(), p, hole, "b") }).Outcome, p)
		short := asker(func(c *Client) { c.Payload = 400 })
		require.Equal(t, OK, awake(func() Result { return short.Probe(t.Context(), p, hole, "b") }).Outcome, p)
	}
}

// TestADatagramMayBeLost: an unanswered question is repeated once, on the same flow.
func TestADatagramMayBeLost(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[int]int{}
	hole := blackHole(t, func(length int) bool {
		mu.Lock()
		defer mu.Unlock()
		seen[length]++
		return seen[length] > 1
	})
	w := asker(func(c *Client) { c.Timeout = 30 * time.Second }).Probe(t.Context(), UDP, hole, "b")
	require.NoError(t, w.Why)
	require.Equal(t, OK, w.Outcome)
}

// TestAQuestionThatWasNotSentSaysNothingOfThePath: a process without CPU time sends nothing, so it
// gets no answer.
func TestAQuestionThatWasNotSentSaysNothingOfThePath(t *testing.T) {
	hole := blackHole(t, nil)
	late := asker(func(c *Client) { c.Timeout = time.Nanosecond })
	require.Equal(t, NoResult, late.Probe(t.Context(), UDP, hole, "b").Outcome)
	sent := awake(func() Result { return asker(unanswered).Probe(t.Context(), UDP, hole, "b") })
	require.Equal(t, Lost, sent.Outcome, "one that was sent, and had no answer, is lost")
}

func TestAProbeEndsInTime(t *testing.T) {
	hole := blackHole(t, nil)
	for _, p := range Protos() {
		asker(brief).Probe(t.Context(), p, hole, "b")

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		require.Equal(t, NoResult, asker().Probe(ctx, p, hole, "b").Outcome, "a probe ends with its context")
	}
}

func TestProbesLeaveNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("probes", func(t *testing.T) {
		_, to := serve(t)
		hole := blackHole(t, nil)
		for _, p := range Protos() {
			for range 10 {
				asker().Probe(t.Context(), p, to, "b")
				asker(func(c *Client) { c.Timeout = 20 * time.Millisecond }).Probe(t.Context(), p, hole, "b")
			}
		}
	})
	requireNoMoreGoroutines(t, before)
}

func TestFitting(t *testing.T) {
	n, err := Fitting(headerSize)
	require.NoError(t, err)
	require.Equal(t, headerSize, n)
	n, err = Fitting(1 << 20)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, headerSize)
}
