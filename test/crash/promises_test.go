package crash

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// ended waits until the node's repair has ended and its slot is free.
func (y *yard) ended(i int) {
	y.t.Helper()
	node := y.nodes[i]
	y.await("the end of the repair of "+y.short(node), func(v *view) bool {
		r := v.record(node)
		return len(history(v, node)) > 0 && (r == nil || r.Phase == remediations.PhaseExhausted) &&
			!slices.ContainsFunc(v.ledger.Slots, func(s ledger.Slot) bool { return s.Node == node })
	})
}

func history(v *view, node string) []remediations.Entry {
	return remediations.DecodeHistory(v.nodes[node].Annotations[remediations.HistoryKey])
}

// kept checks the promises for every node, by the provider's own record. No attempt arrived twice
// or without being on record. The repair's end fits the number of reboots that arrived. Nothing of
// the repair is left behind.
func (y *yard) kept() {
	t := y.t
	t.Helper()
	arrived := 0
	for i, node := range y.nodes {
		y.ended(i)
		calls, last := y.provider.to(node)
		arrived += len(calls)
		y.view.mu.Lock()
		n, l, past := y.view.nodes[node], y.view.ledger, history(y.view, node)
		y.view.mu.Unlock()
		require.Len(t, past, 1, "one repair of %s", y.short(node))
		e := past[0]

		require.LessOrEqual(t, len(e.Steps), y.attempts, "attempts: %v", e.Steps)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(calls))), len(calls), "each attempt arrives once: %v", calls)
		for _, intent := range calls {
			require.True(t, strings.HasPrefix(intent, e.ID+"-"), "the call %s is of repair %s", intent, e.ID)
			require.Contains(t, e.Steps.Texts(), "reboot:"+attemptOf(intent), "the call %s is on record", intent)
		}
		want := remediations.OutcomeRecovered
		switch {
		case len(calls) < y.cures:
			want = remediations.OutcomeExhausted
			require.Len(t, e.Steps, y.attempts, "it is not exhausted before the plan is")
		case e.Outcome == remediations.OutcomeSelfRecovered && e.Ended.After(last.Add(y.proof())):
			// No replica ran that could see the proof within the attempt's time.
			want = remediations.OutcomeSelfRecovered
		}
		require.Equal(t, want, e.Outcome, "%d of the %d reboots arrived that cure it: %s", len(calls), y.cures, e.Why)
		exhausted := want == remediations.OutcomeExhausted
		if exhausted {
			require.Equal(t, "Exhausted", n.Labels[remediations.PhaseLabel])
		} else {
			require.NotContains(t, n.Labels, remediations.PhaseLabel)
			require.NotContains(t, n.Annotations, remediations.NodeRepairKey)
		}
		require.Equal(t, exhausted, n.Spec.Unschedulable)
		require.True(t, slices.ContainsFunc(l.Repairs[n.Spec.ProviderID], func(b ledger.Begun) bool { return b.Repair == e.ID }),
			"the repair counts against its machine: %v", l.Repairs)
	}
	require.Len(t, y.provider.civo.Done(civosim.HardReboots), arrived, "the provider's own record")
	y.sound()
}

// sound fails the test if something was seen that must never happen.
func (y *yard) sound() {
	y.t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	require.Empty(y.t, y.breaches)
}
