package probe

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestStrangersGetNoByte(t *testing.T) {
	s, to := serve(t)
	t.Run("each", func(t *testing.T) { strangers(t, to) })
	for _, p := range Protos() {
		require.Zero(t, s.counted(p, answered))
	}
}

// strangers sends all kinds of messages that must get no answer.
func strangers(t *testing.T, to netip.AddrPort) {
	for _, p := range Protos() {
		other := map[Proto]Proto{TCP: UDP, UDP: TCP}[p]
		whole := askedAt(t, p, 100, time.Now(), oldKey)
		torn := bytes.Clone(whole)
		torn[99] = 1
		turned := message{kind: answer, proto: p, length: 100, at: time.Now()}.seal(oldKey)
		forged := bytes.Clone(whole)
		forged[7]++ // one byte longer than what was signed
		for name, b := range map[string][]byte{
			"noise":                        bytes.Repeat([]byte("x"), 500),
			"an HTTP request":              []byte("GET / HTTP/1.1\r\nHost: agent.example\r\nUser-Agent: curiosity of some length\r\n\r\n"),
			"another key":                  askedAt(t, p, 100, time.Now(), newKey),
			"an answer":                    turned,
			"the other protocol":           askedAt(t, other, 100, time.Now(), oldKey),
			"a length that was not signed": forged,
			"a padding of something":       torn,
			"yesterday's":                  askedAt(t, p, 100, time.Now().Add(-24*time.Hour), oldKey),
			"tomorrow's":                   askedAt(t, p, 100, time.Now().Add(24*time.Hour), oldKey),
		} {
			t.Run(name+" "+string(p), func(t *testing.T) {
				t.Parallel()
				c := dial(t, p, to)
				_, err := c.Write(b)
				require.NoError(t, err)
				silent(t, c)
			})
		}
	}
}

// TestAnAnswerIsNeverLongerThanItsQuestion: whatever a client with a key sends, the answer is not
// longer.
func TestAnAnswerIsNeverLongerThanItsQuestion(t *testing.T) {
	t.Parallel()
	_, to := serve(t)
	for _, p := range Protos() {
		for _, length := range []int{headerSize, headerSize + 1, 500, 1300, MaxSize} {
			c := dial(t, p, to)
			_, err := c.Write(askedAt(t, p, length, time.Now(), oldKey))
			require.NoError(t, err)
			require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
			b := make([]byte, 2*MaxSize)
			n, err := io.ReadAtLeast(c, b, length)
			require.NoError(t, err)
			require.Equal(t, length, n)
			silent(t, c)
		}
	}
}

func TestAQuestionIsAnsweredOnce(t *testing.T) {
	now := newClock()
	s, to := serve(t, func(o *ServerOptions) { o.Now, o.connectionTime = now.Now, time.Hour })
	for _, p := range Protos() {
		b := askedAt(t, p, 200, now.Now(), oldKey)
		for i := range 4 {
			c := dial(t, p, to)
			_, err := c.Write(b)
			require.NoError(t, err)
			if i == 0 {
				require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
				_, err := io.ReadFull(c, make([]byte, 200))
				require.NoError(t, err)
			}
			silent(t, c)
		}
		require.Eventually(t, func() bool { return s.counted(p, replayed) == 3 }, time.Minute, time.Millisecond)
		require.Equal(t, 1, s.counted(p, answered))
	}
}

// TestAReplayIsRememberedAsLongAsItIsYoung: at whatever times questions arrive, and whatever the
// sender's clock shows.
func TestAReplayIsRememberedAsLongAsItIsYoung(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGate(Limits{PerSource: 1e6, Total: 1e6})
		now := time.Unix(1_800_000_000, 0)
		first := map[uint64]bool{}
		var sent []message
		for range rapid.IntRange(1, 60).Draw(t, "questions") {
			now = now.Add(time.Duration(rapid.IntRange(0, 70).Draw(t, "seconds")) * time.Second)
			var q message
			if len(sent) > 0 && rapid.Bool().Draw(t, "again") {
				q = sent[rapid.IntRange(max(0, len(sent)-4), len(sent)-1).Draw(t, "which")] // the young ones
			} else {
				q = message{at: now.Add(time.Duration(rapid.IntRange(-60, 60).Draw(t, "skew")) * time.Second)}
				q.nonce[0], q.nonce[1] = byte(len(sent)), 1
				sent = append(sent, q)
			}
			id := uint64(q.nonce[0])
			if g.admit(q, netip.MustParseAddr("10.0.0.1"), now) == answered {
				require.False(t, first[id], "answered twice")
				first[id] = true
			}
		}
	})
}

func TestAQuestionGrowsOld(t *testing.T) {
	now := newClock()
	s, to := serve(t, func(o *ServerOptions) { o.Now, o.connectionTime = now.Now, time.Hour })
	for _, p := range Protos() {
		for i, skew := range []time.Duration{-maxAge - time.Second, maxAge + time.Second} {
			c := dial(t, p, to)
			_, err := c.Write(askedAt(t, p, 200, now.Now().Add(skew), oldKey))
			require.NoError(t, err)
			require.Eventually(t, func() bool { return s.counted(p, stale) == i+1 }, time.Minute, time.Millisecond)
			silent(t, c)
		}
		for _, skew := range []time.Duration{-maxAge + time.Second, maxAge - time.Second} {
			w := asker(func(c *Client) { c.Now = func() time.Time { return now.Now().Add(skew) } }).Probe(t.Context(), p, to, "b")
			require.Equal(t, OK, w.Outcome)
		}
	}
}

func TestAMessageIsGoodForOneUse(t *testing.T) {
	q := message{kind: question, proto: UDP, length: 100, at: time.Now().Truncate(0)}
	a := q
	a.kind = answer
	require.True(t, a.answers(q))
	require.False(t, q.answers(q), "a question that comes back is no answer")
	for name, change := range map[string]func(*message){
		"proto": func(m *message) { m.proto = TCP }, "nonce": func(m *message) { m.nonce[3]++ },
		"time": func(m *message) { m.at = m.at.Add(1) }, "length": func(m *message) { m.length++ },
	} {
		other := a
		change(&other)
		require.False(t, other.answers(q), name)
	}
}

// TestAFloodIsBounded: the limits hold for one source and for all sources, and one source does not
// use up the share of another.
func TestAFloodIsBounded(t *testing.T) {
	now := newClock()
	s, to := serve(t, func(o *ServerOptions) {
		o.Now, o.Limits = now.Now, Limits{PerSource: 10, Total: 25}
	})
	flood := func(from string, n int) {
		d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}
		c, err := d.DialContext(t.Context(), "udp", to.String())
		require.NoError(t, err)
		defer c.Close()
		for range n {
			_, err := c.Write(askedAt(t, UDP, headerSize, now.Now(), oldKey))
			require.NoError(t, err)
		}
	}
	total := func() int { return s.counted(UDP, answered) + s.counted(UDP, limited) }
	await := func(n int) {
		require.Eventually(t, func() bool { return total() == n }, time.Minute, time.Millisecond)
	}
	flood("127.0.0.2", 50)
	await(50)
	require.Equal(t, 20, s.counted(UDP, answered), "two seconds' worth of a source")
	flood("127.0.0.3", 50)
	await(100)
	require.Equal(t, 40, s.counted(UDP, answered), "another source has its own")
	flood("127.0.0.4", 50)
	await(150)
	require.Equal(t, 50, s.counted(UDP, answered), "two seconds' worth of all")
	now.advance(time.Second)
	flood("127.0.0.4", 50)
	await(200)
	require.Equal(t, 70, s.counted(UDP, answered), "and what a second gave back to the source, which was refused for the others' sake at no cost")
}

// TestAFloodOfStrangersTakesNothingFromPeers.
func TestAFloodOfStrangersTakesNothingFromPeers(t *testing.T) {
	now := newClock()
	s, to := serve(t, func(o *ServerOptions) { o.Now, o.Limits = now.Now, Limits{PerSource: 2, Total: 2} })
	c := dial(t, UDP, to)
	for range 100 {
		_, err := c.Write(askedAt(t, UDP, headerSize, now.Now(), newKey))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return s.counted(UDP, unauthenticated) == 100 }, time.Minute, time.Millisecond)
	require.Equal(t, OK, asker(func(c *Client) { c.Now = now.Now }).Probe(t.Context(), UDP, to, "b").Outcome)
}

func TestSourcesAreBounded(t *testing.T) {
	g := newGate(Limits{PerSource: 1, Total: 1e9})
	now := time.Unix(1_800_000_000, 0)
	r := rand.New(rand.NewPCG(1, 2))
	ask := func(from netip.Addr) result {
		q := message{at: now}
		for i := range q.nonce {
			q.nonce[i] = byte(r.Uint32())
		}
		return g.admit(q, from, now)
	}
	for i := range maxSources + 100 {
		ask(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	require.LessOrEqual(t, len(g.sources), maxSources)
	require.Equal(t, limited, ask(netip.MustParseAddr("192.0.2.1")), "those beyond share one bucket")
	now = now.Add(time.Minute)
	require.Equal(t, answered, ask(netip.MustParseAddr("192.0.2.1")), "and the idle are forgotten")
	require.Less(t, len(g.sources), maxSources)
}

func TestConnectionsAreBounded(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("flood", func(t *testing.T) {
		s, to := serve(t, func(o *ServerOptions) { o.connectionTime = time.Hour }) // no connection ends while the others are opened
		for range maxConnectionsOfOne + 50 {
			dial(t, TCP, to)
		}
		require.Eventually(t, func() bool { return s.counted(TCP, limited) == 50 }, time.Minute, time.Millisecond)
		require.LessOrEqual(t, runtime.NumGoroutine(), before+maxConnectionsOfOne+20)

		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
		c, err := d.DialContext(t.Context(), "tcp", to.String())
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write(askedAt(t, TCP, headerSize, time.Now(), oldKey))
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, headerSize))
		require.NoError(t, err, "another source still has an answer")
	})
	requireNoMoreGoroutines(t, before)
}

// TestASilentConnectionIsClosed: then there is room for another client.
func TestASilentConnectionIsClosed(t *testing.T) {
	_, to := serve(t)
	var open []net.Conn
	for range maxConnectionsOfOne {
		open = append(open, dial(t, TCP, to))
	}
	for _, c := range open {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	require.Equal(t, OK, asker().Probe(t.Context(), TCP, to, "b").Outcome)
}

// TestConnectionsOfAllAreBoundedToo: whatever the number of sources.
func TestConnectionsOfAllAreBoundedToo(t *testing.T) {
	open := newConnections()
	var ends []net.Conn
	serve := func(i int) bool {
		near, far := net.Pipe()
		ends = append(ends, near, far)
		return open.serve(near, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), func(c net.Conn, _ netip.Addr) {
			_, _ = c.Read(make([]byte, 1))
		})
	}
	for i := range maxConnections {
		require.True(t, serve(i))
	}
	require.False(t, serve(maxConnections))
	open.closeAll()
	open.wait()
	require.Empty(t, open.open)
	require.Empty(t, open.sources)
	require.False(t, serve(0), "none is served after the end")
	for _, c := range ends {
		_ = c.Close()
	}
}

// TestAConnectionHasABoundedNumberOfQuestions: it is closed even if a client with a key continues.
func TestAConnectionHasABoundedNumberOfQuestions(t *testing.T) {
	_, to := serve(t, func(o *ServerOptions) { o.connectionTime = time.Hour }) // only the number of questions ends it
	c := dial(t, TCP, to)
	b := make([]byte, headerSize)
	for range maxQuestions {
		_, err := c.Write(askedAt(t, TCP, headerSize, time.Now(), oldKey))
		require.NoError(t, err)
		_, err = io.ReadFull(c, b)
		require.NoError(t, err)
	}
	_, _ = c.Write(askedAt(t, TCP, headerSize, time.Now(), oldKey))
	silent(t, c)
}

func TestNewServerRefusesAnInvalidPort(t *testing.T) {
	for _, listen := range []string{"", "9099", ":many", ":99999", "localhost:9099"} {
		_, err := NewServer(ServerOptions{Listen: listen})
		require.ErrorContains(t, err, fmt.Sprintf("the probe port %q", listen))
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	s, err := NewServer(ServerOptions{Listen: taken.Addr().String()})
	require.NoError(t, err)
	require.ErrorContains(t, s.Start(t.Context()), "opening the probe port")
}
