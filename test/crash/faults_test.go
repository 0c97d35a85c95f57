package crash

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/soak"
)

// fault is one way for a call to the API server to fail.
type fault struct {
	name string
	when moment
	do   func(y *yard, c *call) lab.Verdict
	// slow means that the fault takes 10 s. Outside of the soak, only the intent and the outcome
	// get it, and in a mixture only one call.
	slow bool
}

func answers(v lab.Verdict) func(*yard, *call) lab.Verdict {
	return func(*yard, *call) lab.Verdict { return v }
}

var faults = []fault{
	{"somebody else was quicker, 409", before, func(y *yard, c *call) lab.Verdict {
		y.touch(c.what)
		return lab.Pass
	}, false},
	{"too many requests, 429", before, answers(lab.TooManyRequests), false},
	{"an internal error, 500", before, answers(lab.InternalError), false},
	{"unavailable, 503", before, answers(lab.Unavailable), false},
	{"the connection breaks before the call takes effect", before, answers(lab.Reset), false},
	{"the connection breaks after the call took effect", after, answers(lab.Reset), false},
	{"the answer comes too late", after, func(_ *yard, c *call) lab.Verdict {
		<-c.request.Context().Done() // the caller has given up
		return lab.Reset
	}, true},
}

// touch changes an object as the test's own user. A write that depends on an earlier read of the
// object is then refused.
func (y *yard) touch(what string) {
	ctx := y.t.Context()
	patch := []byte(fmt.Sprintf(`{"metadata":{"annotations":{"example.com/touched":"%d"}}}`, time.Now().UnixNano()))
	var err error
	switch what {
	case "":
		return
	case "ledger":
		_, err = y.lab.Client().CoreV1().ConfigMaps(y.name).Patch(ctx, ledgerName, types.MergePatchType, patch, metav1.PatchOptions{})
	default:
		_, err = y.lab.Client().CoreV1().Nodes().Patch(ctx, what, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		y.note("touching %s: %v", what, err) // the ledger may not exist yet
	}
}

// TestEachWriteFailsOnce makes the first write of each kind fail, in one way for each run: the
// ledger, the alert, the intent, the outcome, the end. The plan has spare attempts, so every repair
// must end with a proven cure.
func TestEachWriteFailsOnce(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, shared(t), options{cures: 2, attempts: 4})
			var mu sync.Mutex
			hit := map[string]bool{}
			y.on(func(c *call, when moment) lab.Verdict {
				// The crash points and the provider's own tests already test the provider's call.
				if c.name == "" || c.from == nil || when != f.when || (f.slow && !soak.Whole() && !strings.Contains(c.name, "reboot:")) {
					return lab.Pass
				}
				mu.Lock()
				again := hit[c.kind()]
				hit[c.kind()] = true
				mu.Unlock()
				if again {
					return lab.Pass
				}
				return f.do(y, c)
			})
			y.start()
			y.fail(0)
			y.kept()
			require.GreaterOrEqual(t, len(y.provider.calls(y.nodes[0])), y.cures, "attempts to spare")
			mu.Lock()
			defer mu.Unlock()
			if !f.slow {
				require.Greater(t, len(hit), 6, "the faults that there were: %v", hit)
			}
			require.GreaterOrEqual(t, len(hit), 2)
		})
	}
}

// TestFaultsAtRandom injects random faults into a third of all writes for a minute, during the
// repair of two nodes.
func TestFaultsAtRandom(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	runs := 3
	if soak.Whole() {
		runs = 24
	}
	for i := range runs {
		seed := random.Uint64()
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			y := newYard(t, shared(t), options{nodes: 2, cures: 2, attempts: 6})
			y.on(y.random(rand.New(rand.NewPCG(seed, 1)), 0.35, time.Now().Add(time.Minute)))
			y.start()
			y.fail(0)
			y.fail(1)
			y.kept()
		})
	}
}

// random returns a hook that makes that share of the writes fail until the given time, with random
// faults.
func (y *yard) random(r *rand.Rand, share float64, until time.Time) hook {
	var mu sync.Mutex
	var late atomic.Bool
	return func(c *call, when moment) lab.Verdict {
		if c.name == "" || c.from == nil || time.Now().After(until) {
			return lab.Pass
		}
		mu.Lock()
		f, hit := faults[r.IntN(len(faults))], r.Float64() < share
		mu.Unlock()
		if !hit || f.when != when {
			return lab.Pass
		}
		if f.slow && late.Swap(true) {
			return lab.Pass
		}
		y.note("fault: %s", f.name)
		return f.do(y, c)
	}
}

// TestWatchesBreak cuts every watch of the Nodes after a short time, during the whole repair.
func TestWatchesBreak(t *testing.T) {
	t.Parallel()
	y := newYard(t, shared(t), options{nodes: 2, cures: 2, attempts: 2, steady: true, wait: patient})
	var cut atomic.Int64
	y.on(func(c *call, when moment) lab.Verdict {
		if when == after && c.request.URL.Path == "/api/v1/nodes" && c.request.URL.Query().Get("watch") != "" {
			cut.Add(1)
			c.answer.Body = newCutOff(c.answer.Body, 300*time.Millisecond)
		}
		return lab.Pass
	})
	y.start()
	y.fail(0)
	y.fail(1)
	y.kept()
	require.Greater(t, cut.Load(), int64(3), "watches that were cut")
	require.Len(t, y.provider.calls(y.nodes[0]), 2, "no attempt was lost")
	require.Len(t, y.provider.calls(y.nodes[1]), 2)
}

// cutOff is a stream that breaks after some time.
type cutOff struct {
	io.ReadCloser
	broken atomic.Bool
	timer  *time.Timer
}

func newCutOff(body io.ReadCloser, after time.Duration) *cutOff {
	c := &cutOff{ReadCloser: body}
	c.timer = time.AfterFunc(after, func() {
		c.broken.Store(true)
		_ = body.Close() // ends a Read that is under way
	})
	return c
}

func (c *cutOff) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if c.broken.Load() {
		return n, errors.Join(http.ErrAbortHandler, err)
	}
	return n, err
}

func (c *cutOff) Close() error {
	c.timer.Stop()
	return c.ReadCloser.Close()
}

// TestTheAPIServerRestarts kills the API server during a repair: once for a moment, and once for
// longer than the leader may go without renewing its Lease. It has a lab of its own, because this
// affects every Drydock.
func TestTheAPIServerRestarts(t *testing.T) {
	t.Parallel()
	l := lab.New(t, lab.Options{Components: lab.APIServerOnly, Alertmanagers: 1})
	s := prepare(t, l)
	for _, outage := range []time.Duration{0, 6 * time.Second} {
		t.Run(outage.String(), func(t *testing.T) {
			y := newYard(t, s, options{nodes: 2, cures: 2, attempts: 6})
			y.start()
			leader := y.leading().PID()
			y.fail(0)
			y.await("an intent", func(v *view) bool { return v.record(y.nodes[0]) != nil })
			server, ended := l.Process("kube-apiserver"), y.replicas[0].Done() // of this process, because the next one may start soon
			server.Kill()
			if outage > 0 {
				select { // the leader ends by itself
				case <-ended:
				case <-time.After(lab.Patience):
					require.Fail(t, "the leader goes on without its Lease")
				}
			}
			require.NoError(t, server.Start(t.Context()))
			y.fail(1)
			y.kept()
			if outage > 0 {
				require.NotEqual(t, leader, y.replicas[0].PID(), "a long outage costs the leader")
			}
		})
	}
}
