package location_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/location"
)

// check checks what must hold for each decision about a leader.
func (l *meshLife) check(t *rapid.T, s *location.State, d lifecycle.Decision) {
	r := s.Record
	require.False(t, d.Cordon || d.Uncordon || d.Taint || d.Untaint || d.Stop != "" || d.Allow != nil || d.Pause != "" || d.Notices != nil, "a move touches no more than the keys")
	require.Contains(t, lifecycle.Verbs, d.Verb)
	require.NotEqual(t, lifecycle.VerbReset, d.Verb)
	require.False(t, d.Ask.Lease || d.Ask.Survey || d.Ask.Replacement)
	require.Subset(t, []string{CancelKey, ApproveKey}, d.Consume)
	require.Equal(t, d.Verb == lifecycle.VerbResume || (d.Verb == lifecycle.VerbIssue && d.Record.Back != nil), d.PutBack != nil)
	if d.Record != nil {
		require.LessOrEqual(t, len(d.Record.Encode()), MaxRecordBytes)
		_, err := DecodeRecord(d.Record.Encode())
		require.NoError(t, err, "what it writes, it reads")
	}
	if r != nil && r.Phase != PhaseExhausted && d.Record == nil && (d.Verb == lifecycle.VerbWait || d.Verb == lifecycle.VerbHold || d.Verb == lifecycle.VerbResume) {
		require.False(t, l.now.After(r.Deadline.Add(time.Minute)), "%s since %s outlives its deadline: %s %s", r.Phase, r.Since, d.Verb, d.Message)
	}
	if next := d.Record; waitsUnproven(next) {
		require.False(t, next.Deadline.After(l.now.Add(location.UnprovenFor+policyOf(s, next).ProofFor)), "it is not left alone for a day: %s", d.Message)
		require.False(t, waitsUnproven(r) && next.Deadline.After(r.Deadline), "nor by one word after another: %s", d.Message)
	}
	if d.Ended != nil {
		l.checkEnd(t, s, d)
	}
	switch {
	case d.Verb != lifecycle.VerbIssue:
	case d.PutBack != nil:
		l.checkPutBack(t, s, d)
	default:
		l.checkMove(t, s, d)
	}
}

// waitsUnproven reports whether no further attempt is possible, and the cure is not proven.
func waitsUnproven(r *Record) bool {
	return r != nil && r.Phase == PhasePending && r.Intent != nil && r.Back == nil && r.Hold != nil && slices.Contains(location.Unproven, r.Hold.Reason)
}

func (l *meshLife) checkMove(t *rapid.T, s *location.State, d lifecycle.Decision) {
	l.seen["moves"]++
	g, r, n := s.Seen, d.Record, s.Node
	m := r.Moves[len(r.Moves)-1]
	require.Less(t, l.now.Sub(g.At), 10*time.Second, "the last look")
	require.Empty(t, g.Unknown)
	require.Empty(t, g.Held)
	require.False(t, g.Reached, "a location that answers is left alone")
	require.Equal(t, g.Leader, m.From)
	require.Contains(t, g.Candidates, m, "as the look proposed it")
	tried := r.Moves[:len(r.Moves)-1]
	if len(tried) == 0 {
		require.Equal(t, n.Name, g.Leader, "the record is on the one that leads")
	} else {
		require.True(t, g.Leader == n.Name || slices.ContainsFunc(tried, func(b Move) bool { return b.To == g.Leader }), "nobody else moved it")
	}
	require.NotEqual(t, n.Name, m.To)
	require.False(t, slices.ContainsFunc(tried, func(b Move) bool { return b.To == m.To }), "each candidate once")
	require.Equal(t, m.To, r.Intent.Successor)
	p := s.Config.Policy(r.Policy)
	require.Equal(t, ModeEnforce, p.Mode)
	require.LessOrEqual(t, len(r.Moves), p.Plan[0].Attempts)
	require.False(t, l.intents[r.Intent.ID], "no intent is issued twice")
	l.intents[r.Intent.ID] = true

	require.False(t, Excluded(n))
	require.NotContains(t, n.Annotations, PauseKey)
	require.NotContains(t, n.Annotations, BreakGlassKey)
	require.False(t, n.Spec.Unschedulable)
	require.Empty(t, s.Snapshot.VerdictFor(r.Cause.Alert, s.Config, "").Reason, "an Alertmanager says active, and none objects")
	require.Empty(t, s.Snapshot.BlindCause(s.Config))
	for _, name := range append(r.Successors(), n.Name) {
		node := ReadJournal(l.nodes[name]).Record
		require.False(t, node != nil && node.Phase.InFlight(), "%s is under repair itself", name)
	}
	for name, other := range l.nodes {
		lead := ReadJournal(other).Records[LocationKey]
		require.False(t, name != n.Name && lead != nil && lead.Phase.InFlight(), "two leaders at once")
	}
	for _, earlier := range l.moves[s.Name] {
		if earlier.repair != r.ID {
			require.GreaterOrEqual(t, l.now.Sub(earlier.at), 15*time.Minute-time.Second, "too soon after repair %s", earlier.repair)
		}
	}
	if len(tried) == 0 {
		l.before[r.ID] = map[string]string{}
		for k, v := range l.keys {
			l.before[r.ID][k] = v
		}
	}
	l.moves[s.Name] = append(l.moves[s.Name], issuedMove{r.ID, l.now})
}

func (l *meshLife) checkPutBack(t *rapid.T, s *location.State, d lifecycle.Decision) {
	l.seen["put back"]++
	require.Equal(t, ModeEnforce, s.Config.Policy(d.Record.Policy).Mode)
	var want []Move
	for i, m := range slices.Backward(d.Record.Moves) {
		if refused := m.Refused || (i == len(d.Record.Moves)-1 && d.Record.Intent.Outcome == CallRefused); !refused {
			want = append(want, m)
		}
	}
	require.NotEmpty(t, want)
	require.Equal(t, want, d.PutBack, "all that may have been made, the newest first")
	require.False(t, Excluded(s.Node))
	require.NotContains(t, s.Node.Annotations, PauseKey)
	node := s.Journal.Record
	require.False(t, node != nil && node.Phase.InFlight())
	l.moves[s.Name] = append(l.moves[s.Name], issuedMove{d.Record.ID, l.now})
}

func (l *meshLife) checkEnd(t *rapid.T, s *location.State, d lifecycle.Decision) {
	r, g := s.Record, s.Seen
	require.Equal(t, r.Moves, append([]Move(nil), d.Ended.Moves...), "what each key was before is in the history")
	if d.Ended.Outcome == OutcomeRecovered {
		require.Equal(t, r.Intent.Successor, g.Leader)
		require.True(t, g.Settled && g.Reached)
		require.True(t, g.At.After(r.Intent.At))
		require.NotEqual(t, CallRefused, r.Intent.Outcome)
		require.True(t, s.Snapshot.VerdictFor(r.Cause.Alert, s.Config, "").Gone)
		require.GreaterOrEqual(t, l.now.Sub(s.WellSince), policyOf(s, r).ProofFor)
	}
	if d.Ended.Outcome == OutcomeSuperseded {
		require.NotEqual(t, s.Node.Name, g.Leader)
		require.NotContains(t, r.Successors(), g.Leader)
	}
	if d.Ended.Outcome != OutcomeExhausted {
		return
	}
	if waitsUnproven(r) {
		l.seen["left unproven"]++
	}
	if len(d.Record.Undo) > 0 {
		l.seen["left undone"]++
		return
	}
	l.seen["undone"]++
	if l.touched[r.ID] {
		return
	}
	for _, m := range r.Moves {
		for n := range m.Before {
			was, had := l.before[r.ID][n]
			is, has := l.keys[n]
			require.Equal(t, []any{was, had}, []any{is, has}, "the key of %s is as it was", n)
		}
	}
}

// TestLeadershipMovesOnlyWhereEverythingSaysSo checks every single decision, over random histories
// of a mesh, its nodes, the Alertmanagers and people. A move needs a fresh observation that shows
// the leader of the record and proposes the move. Each candidate is tried once, and one location at
// a time. A location has one repair within limits.leaders.perLocation, despite restarts, and no
// repair beside a repair of one of its nodes. If no move helped, all leader annotations are as
// before.
func TestLeadershipMovesOnlyWhereEverythingSaysSo(t *testing.T) {
	everything := []string{
		"moves", "put back", "undone", "left unproven", "node repairs",
		string(OutcomeRecovered), string(OutcomeSelfRecovered), string(OutcomeExhausted), string(OutcomeSuperseded), string(OutcomeCancelled),
	}
	seen := map[string]int{}
	lacks := func() []string {
		return slices.DeleteFunc(slices.Clone(everything), func(what string) bool { return seen[what] > 0 })
	}
	for round := 0; round == 0 || (round < 5 && len(lacks()) > 0 && !testing.Short()); round++ { // rare events may need more histories
		rapid.Check(t, func(rt *rapid.T) {
			l := newMeshLife(t, rt)
			rt.Repeat(l.actions())
			for k, n := range l.seen {
				seen[k] += n
			}
		})
	}
	t.Logf("%v", seen)
	if testing.Short() {
		return // a fifth of the histories may not show everything
	}
	require.Empty(t, lacks(), "histories in which nothing happens show nothing")
}

func policyOf(s *location.State, r *Record) *Policy { return s.Config.Policy(r.Policy) }
