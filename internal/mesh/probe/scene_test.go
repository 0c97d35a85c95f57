package probe

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

var (
	oldKey = Key("0123456789abcdef0123456789abcdef-old")
	newKey = Key("0123456789abcdef0123456789abcdef-new")
)

func have(keys ...Key) func() []Key { return func() []Key { return keys } }

// clock is a clock that the test sets.
type clock struct{ atomic.Int64 }

func newClock() *clock { c := &clock{}; c.Store(time.Now().UnixNano()); return c }

func (c *clock) Now() time.Time          { return time.Unix(0, c.Load()) }
func (c *clock) advance(d time.Duration) { c.Add(int64(d)) }

// serve runs a Server of node b, and returns its address.
func serve(t *testing.T, change ...func(*ServerOptions)) (*Server, netip.AddrPort) {
	t.Helper()
	o := ServerOptions{Listen: "127.0.0.1:0", Node: "b", Keys: have(oldKey), Now: time.Now, Registerer: prometheus.NewRegistry(), Log: logr.Discard()}
	for _, c := range change {
		c(&o)
	}
	s, err := NewServer(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	select {
	case <-s.Listening():
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	host, _, err := net.SplitHostPort(o.Listen)
	require.NoError(t, err)
	if host == "" {
		host = "127.0.0.1"
	}
	return s, netip.AddrPortFrom(netip.MustParseAddr(host), s.Port())
}

func asker(change ...func(*Client)) Client {
	c := Client{Node: "a", Keys: have(oldKey), Now: time.Now, Rand: rand.Reader, Timeout: 5 * time.Second}
	for _, f := range change {
		f(&c)
	}
	return c
}

// brief sets a short timeout, for probes without an answer whose result does not matter.
func brief(c *Client) { c.Timeout = 300 * time.Millisecond }

// unanswered sets the default timeout, for probes whose missing answer must have a result. It ends
// before an agent closes the connection.
func unanswered(c *Client) { c.Timeout = defaultTimeout }

// awake repeats the probe until this process had CPU time during all of it. Other tests cover a
// probe without CPU time.
func awake(ask func() Result) Result {
	for {
		if w := ask(); !errors.Is(w.Why, errOverslept) && !errors.Is(w.Why, errUnsent) {
			return w
		}
	}
}

func (s *Server) counted(p Proto, r result) int {
	return int(testutil.ToFloat64(s.questions.WithLabelValues(string(p), string(r))))
}

// dial opens a raw connection to the Server.
func dial(t *testing.T, p Proto, to netip.AddrPort) net.Conn {
	t.Helper()
	c, err := net.Dial(string(p), to.String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// askedAt returns a signed question.
func askedAt(t *testing.T, p Proto, length int, at time.Time, k Key) []byte {
	t.Helper()
	q := message{kind: question, proto: p, length: length, at: at, node: fingerprint("a")}
	_, err := rand.Read(q.nonce[:])
	require.NoError(t, err)
	return q.seal(k)
}

// silent requires that no byte comes back, for a thousand times as long as an answer on loopback
// takes.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	n, err := c.Read(make([]byte, 1))
	require.Zero(t, n)
	require.Error(t, err)
}

// requireNoMoreGoroutines requires that all goroutines of the test have ended.
func requireNoMoreGoroutines(t *testing.T, before int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("goroutines are left behind:\n%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
}

func writeKeys(t *testing.T, path, text string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "key")
	}
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
