package sidecar_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// check checks what must hold for each decision.
func (l *sidecarLife) check(t *rapid.T, d lifecycle.Decision) {
	s, r := l.s, l.s.Record
	require.False(t, d.Cordon || d.Uncordon || d.Taint || d.Untaint || d.Stop != "" || d.Allow != nil || d.Pause != "", "an approval touches neither its node nor the ledger")
	require.Contains(t, lifecycle.Verbs, d.Verb)
	require.NotEqual(t, lifecycle.VerbResume, d.Verb)
	require.NotEqual(t, lifecycle.VerbReset, d.Verb)
	require.False(t, d.Ask.Lease || d.Ask.Survey || d.Ask.Replacement)
	require.Subset(t, []string{CancelKey}, d.Consume, "no other word of a person's is its to take")
	if d.Record != nil {
		require.LessOrEqual(t, len(d.Record.Encode()), MaxRecordBytes)
		require.LessOrEqual(t, len(d.Record.Encode()), sidecar.Room)
		again, err := DecodeRecord(d.Record.Encode())
		require.NoError(t, err, "what it writes, it reads")
		require.Equal(t, SidecarKey(*again.Pod), s.Key)
		require.Empty(t, d.Record.Undo)
		would := d.Record.Phase == PhasePending && d.Record.Hold != nil && d.Record.Hold.Reason == ReasonObserving
		require.True(t, d.Record.Intent != nil || would, "a record only while something is done, or would be")
	}
	if r != nil && r.Phase != PhaseExhausted && d.Verb != lifecycle.VerbLook && d.Record == nil && d.Verb != lifecycle.VerbEnd {
		over := slices.MaxFunc([]time.Time{r.Deadline, r.Since}, time.Time.Compare) // a call may have taken longer than its proof's wait
		require.False(t, l.now.After(over.Add(time.Minute)), "%s since %s outlives its deadline: %s %s", r.Phase, r.Since, d.Verb, d.Message)
	}
	if d.Ended != nil && d.Ended.Outcome == OutcomeRecovered {
		require.Equal(t, sidecar.HealthReady, s.Seen.Health)
		require.Equal(t, r.Intent.UID, s.Seen.Pod.UID)
		require.True(t, s.Seen.At.After(r.Intent.At))
		require.NotEqual(t, CallRefused, r.Intent.Outcome)
	}
	if d.Verb != lifecycle.VerbIssue {
		return
	}
	l.calls++
	require.True(t, ClocksAgree(s.Heartbeats, l.now), "the times of the pod and of this clock can be compared")
	g, p, n := s.Seen, s.Config.Policies[0], s.Node
	require.LessOrEqual(t, l.now.Sub(g.At), 10*time.Second, "the last sighting")
	require.Equal(t, sidecar.HealthNotReady, g.Health)
	require.Empty(t, g.Held)
	require.Empty(t, g.Unknown)
	require.NotEmpty(t, g.Pod.UID)
	require.Equal(t, n.Name, g.Node, "the pod is here")
	require.Equal(t, g.Pod.UID, d.Record.Pod.UID)
	late := l.byHand.Sub(l.started) > 20*time.Minute // by then the two no longer look alike
	require.False(t, !l.byHand.IsZero() && late, "somebody closed the gate at %s, and its container had run since %s", l.byHand, l.started)
	require.Equal(t, ModeEnforce, p.Mode)
	require.False(t, Excluded(n))
	require.NotContains(t, n.Annotations, PauseKey)
	require.NotContains(t, n.Annotations, BreakGlassKey)
	require.False(t, n.Spec.Unschedulable && !p.RepairCordoned)
	require.Empty(t, n.Spec.Taints)
	require.Empty(t, s.Snapshot.VerdictFor(d.Record.Cause.Alert, s.Config, "").Reason, "an Alertmanager says active, and none objects")
	require.LessOrEqual(t, l.now.Sub(s.Snapshot.AskedAt), s.Config.MaxStaleness)
	require.Empty(t, s.Snapshot.BlindCause(s.Config))
	require.False(t, s.Journal.Record != nil && s.Journal.Record.Phase.InFlight(), "its node is under repair")
	require.Less(t, s.Busy, s.Config.Limits.Sidecars)
	for k, other := range s.Journal.Of(KindSidecar) {
		require.False(t, k != s.Key && other.Phase == PhaseActing, "one after the other")
	}
	id := d.Record.ID
	if times := l.issued[id]; len(times) > 0 {
		require.GreaterOrEqual(t, l.now.Sub(times[len(times)-1]), 30*time.Second-time.Second, "too soon")
	}
	l.issued[id] = append(l.issued[id], l.now)
	require.LessOrEqual(t, len(l.issued[id]), p.Plan[0].Attempts)
	require.False(t, l.known[d.Record.Intent.Task], "a sidecar never does a known task again")
	require.False(t, l.known[d.Record.Intent.ID])
	l.known[d.Record.Intent.Task], l.known[d.Record.Intent.ID] = true, true
}

// TestSidecarIsApprovedOnlyWhereEverythingSaysSo checks every single decision, over random
// histories of a sidecar, its pod, its node, the Alertmanagers and people.
func TestSidecarIsApprovedOnlyWhereEverythingSaysSo(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		l := newSidecarLife(t, rt)
		rt.Repeat(l.actions())
		seen["calls"] += l.calls
		for _, e := range l.s.Journal.History {
			seen[string(e.Outcome)]++
		}
	})
	t.Logf("%v", seen)
	require.NotZero(t, seen["calls"], "a history in which nothing happens shows nothing")
}
