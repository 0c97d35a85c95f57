package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/internal/soak"
	"drydock.dev/drydock/remediations"
)

// fault is what happens to the first request of a repair that goes to another system through the
// API server.
type fault struct {
	// before is the hook for the request on its way to the API server. after is the hook for its
	// answer, when the request has been carried out.
	before, after lab.Verdict
	// kills means that Drydock dies at that moment, and is started again.
	kills bool
	// attempts is how many attempts the repair needs. A second one is needed if it is unknown
	// whether the first request changed something.
	attempts int
	// again means that the first attempt is given back and made again, because the request was
	// refused.
	again bool
	// note is the text about the first attempt in the Event with that reason. It is empty if
	// Drydock died before it could know.
	reason, note string
}

var faults = map[string]fault{
	"lost":    {after: lab.Reset, attempts: 1, reason: "RepairVerifying", note: "may have been"},
	"killed":  {after: lab.Reset, kills: true, attempts: 1},
	"unsent":  {before: lab.Reset, kills: true, attempts: 2},
	"refused": {before: lab.TooManyRequests, attempts: 1, again: true, reason: "RepairHeld", note: "nothing was done"},
}

// requested describes how a node's machine is rebooted by a request through the API server.
type requested struct {
	node   string
	config lab.DrydockOptions
	step   func(wait string) map[string]any
	// asks reports whether the request asks for the reboot.
	asks func(r *http.Request, body []byte) bool
	// rebooted returns what the other system has rebooted, by its own record.
	rebooted func() []string
	// ended asserts what the other system has rebooted and kept after a repair with that many
	// attempts.
	ended func(e remediations.Entry, attempts int)
}

// aFaultLeavesOneRequest tests that, whatever happens to the first request, the machine is rebooted
// once, and the new boot ID proves it.
func aFaultLeavesOneRequest(t *testing.T, begin func(y *yard, name string) requested) {
	t.Helper()
	for name, f := range soak.OneOf(t, faults) {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			r := begin(y, name)
			r.ended(y.suffers(r, f), f.attempts)
		})
	}
}

// suffers returns how a repair ends whose first request meets the fault.
func (y *yard) suffers(r requested, f fault) remediations.Entry {
	y.t.Helper()
	proxy, err := y.lab.NewProxy()
	require.NoError(y.t, err)
	y.t.Cleanup(proxy.Close)
	wait := patience
	if f.attempts > 1 {
		wait = "5s" // nothing was done, so this time passes
	}
	r.config.Config["policies"] = []any{resets(r.step(wait), r.step(patience))}
	r.config.Server = proxy.URL()
	d := y.run(r.config)
	var requests atomic.Int32
	meets := func(v lab.Verdict) lab.Verdict {
		if v != lab.Pass && f.kills {
			d.Kill()
		}
		return v
	}
	const first = "X-First-Request" // the request's body cannot be read any more where its answer is
	proxy.Before(func(in *http.Request) lab.Verdict {
		if in.Method != http.MethodPost && in.Method != http.MethodPatch {
			return lab.Pass
		}
		body, err := io.ReadAll(in.Body)
		in.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil || !r.asks(in, body) || requests.Add(1) > 1 {
			return lab.Pass
		}
		in.Header.Set(first, "true")
		return meets(f.before)
	})
	proxy.After(func(res *http.Response) lab.Verdict {
		if res.Request.Header.Get(first) == "" {
			return lab.Pass
		}
		return meets(f.after)
	})
	before := y.node(r.node).Status.NodeInfo.BootID

	y.fail(r.node)
	if f.kills {
		lab.AwaitEnd(y.t, d.Process)
		record := remediations.ReadJournal(y.node(r.node)).Record
		require.NotNil(y.t, record, "the intent is on the Node")
		require.Equal(y.t, remediations.PhaseActing, record.Phase)
		if f.before != lab.Pass {
			require.Empty(y.t, r.rebooted())
		}
		require.NoError(y.t, y.lab.Restart(y.t.Context(), d))
	}
	e := y.ended(r.node)

	require.Equal(y.t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(y.t, slices.Repeat([]string{fmt.Sprint(r.step("")["step"], ":1")}, f.attempts), e.Steps.Texts())
	require.NotEqual(y.t, before, y.node(r.node).Status.NodeInfo.BootID)
	sent := f.attempts
	if f.again {
		sent++
	}
	require.EqualValues(y.t, sent, requests.Load(), "one request for each attempt, and one that was refused")
	require.Empty(y.t, y.civo.Done(civosim.Any))
	if f.note != "" {
		y.awaitEvent(r.node, f.reason, f.note)
	}
	return e
}
