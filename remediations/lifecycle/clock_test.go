package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/targets/sidecar"
	"drydock.dev/drydock/remediations/testing/scene"
)

// aheadBy returns the state of a node whose record and history were written by a leader with a
// clock that was ahead by this much.
func aheadBy(t *testing.T, by time.Duration, agree bool) *lifecycle.State {
	t.Helper()
	s := (&scene.Scene{}).State(t)
	if !agree {
		s.Heartbeats = &signs.Heartbeats{ReadAt: scene.Noon, Nodes: 10, Stale: 10}
	}
	n := s.Node
	ended := scene.Noon.Add(by)
	n.Annotations[HistoryKey] = EncodeHistory(nil, Entry{
		ID: "abc234", Policy: "node-not-ready", Outcome: OutcomeRecovered, Steps: Attempts{{Name: "reboot", Number: 1}}, Began: ended.Add(-time.Minute), Ended: ended, Cause: "f00df00df00df00d",
	})
	s.Journal = ReadJournal(n)
	return s
}

// TestEndsFromTheFutureAreClamped: because of a wrong clock, the history says that the last repair
// ended next month. If most leases agree with this clock, Drydock corrects the time on the Node,
// and the cooldown ends as usual. Otherwise Drydock changes nothing, because this clock may be
// wrong.
func TestEndsFromTheFutureAreClamped(t *testing.T) {
	const month = 30 * 24 * time.Hour
	for name, c := range map[string]struct {
		by     time.Duration
		agree  bool
		clamps bool
	}{
		"a month ahead":                      {month, true, true},
		"a month ahead, and leases disagree": {month, false, false},
		"a right clock":                      {-time.Minute, true, false},
		"clocks are never quite the same":    {30 * time.Second, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := aheadBy(t, c.by, c.agree)
			d := node.Decide(s, scene.Noon)
			require.Equal(t, c.clamps, d.History != nil, d.Message)
			if !c.clamps {
				require.NotEqual(t, lifecycle.VerbIssue, d.Verb)
				return
			}
			require.Equal(t, scene.Noon, d.History[0].Ended)
			require.Equal(t, "abc234", d.History[0].ID)
			s.Node.Annotations[HistoryKey] = EncodeEntries(d.History)
			s.Journal = ReadJournal(s.Node)
			d = node.Decide(s, scene.Noon.Add(time.Second))
			require.Nil(t, d.History, "once")
			require.Equal(t, ReasonCooldown, d.Reason, d.Message)
			require.False(t, d.Recheck.After(scene.Noon.Add(time.Hour)), "%s", d.Recheck)
		})
	}
	t.Run("the leases are read first", func(t *testing.T) {
		s := aheadBy(t, month, true)
		s.Heartbeats = nil
		d := node.Decide(s, scene.Noon)
		require.True(t, d.Ask.Heartbeats)
		require.Nil(t, d.History)
	})
}

// TestACancelFromTheFutureIsClamped: a cancel with a time in the next month holds the alert only
// until the alert starts again, and not for a month.
func TestACancelFromTheFutureIsClamped(t *testing.T) {
	s := (&scene.Scene{}).State(t)
	a := s.Journal.Alerts[0]
	a.Cancelled = &CancelledRepair{ID: "abc234", At: scene.Noon.Add(720 * time.Hour)}
	s.Node.Annotations[a.Key()] = a.Encode()
	s.Journal = ReadJournal(s.Node)
	d := node.Decide(s, scene.Noon)
	require.Len(t, d.Alerts, 1)
	require.Equal(t, scene.Noon, d.Alerts[0].Cancelled.At)
}

// TestOnlyWrongTimesAreCorrected: what is right on the Node is not written again.
func TestOnlyWrongTimesAreCorrected(t *testing.T) {
	state := func(cancelled time.Duration) *lifecycle.State {
		s := aheadBy(t, -time.Hour, true)
		s.Journal.Alerts[0].Cancelled = &CancelledRepair{ID: "abc234", At: scene.Noon.Add(cancelled)}
		return s
	}
	require.False(t, node.FromTheFuture(state(-time.Minute), scene.Noon))
	require.Empty(t, node.Decide(state(-time.Minute), scene.Noon).Alerts)
	d := node.Decide(state(time.Hour), scene.Noon)
	require.Len(t, d.Alerts, 1)
	require.Nil(t, d.History)
}

// TestWhichRecordsOfANodeAreClamped: a repair that waits for a call or a proof keeps its times,
// because that wait ends by itself. A held repair and a running drain do not.
func TestWhichRecordsOfANodeAreClamped(t *testing.T) {
	for name, c := range map[string]struct {
		phase  Phase
		step   string
		clamps bool
	}{
		"held":                       {PhasePending, "reboot", true},
		"a held drain":               {PhasePending, "drain", true},
		"a running drain":            {PhaseActing, "drain", true},
		"a call that is under way":   {PhaseActing, "reboot", false},
		"a reboot without a proof":   {PhaseVerifying, "reboot", false},
		"a drain that has ended":     {PhaseVerifying, "drain", false},
		"a repair without more step": {PhaseExhausted, "reboot", false},
	} {
		s := aheadBy(t, -time.Hour, true)
		s.Node = scene.Acting()
		r := ReadJournal(s.Node).Record
		r.Phase, r.Step.Name, r.Since = c.phase, c.step, scene.Noon.Add(time.Hour)
		s.Journal = Journal{Record: r}
		require.Equal(t, c.clamps, node.FromTheFuture(s, scene.Noon), name)
	}
}

// TestDeadlinesFromFarAwayAreClamped: Drydock corrects an impossible deadline of a held repair, of
// a drain, of a sidecar's repair and of a location's.
func TestDeadlinesFromFarAwayAreClamped(t *testing.T) {
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*Record)
		most   time.Duration
	}{
		"held": {func(r *Record) { r.Phase, r.Intent, r.Done = PhasePending, nil, nil }, PendingFor},
		"a drain": {func(r *Record) {
			r.Step, r.Done = StepRef{Name: "drain", Attempt: 1}, Attempts{{Name: "drain", Number: 1}}
		}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			for _, agree := range []bool{true, false} {
				s := aheadBy(t, -time.Hour, agree)
				s.Node = scene.Acting()
				r := ReadJournal(s.Node).Record
				r.Policy, r.Cause.Alert, r.Deadline = "node-not-ready", scene.FP, far
				c.change(r)
				s.Journal = Journal{Record: r, Alerts: s.Journal.Alerts}
				d := node.Decide(s, scene.Noon)
				require.Equal(t, agree, d.Record != nil && !d.Record.Deadline.After(scene.Noon.Add(c.most)), "%s", d.Message)
			}
		})
	}
	t.Run("a sidecar", func(t *testing.T) {
		for _, agree := range []bool{true, false} {
			s := scene.ReadSidecar(t, "{}").SidecarState(t)
			r := sidecar.Decide(s, scene.Noon).Record
			r.Phase, r.Deadline = PhaseVerifying, far
			s.Record, s.Heartbeats = r, &signs.Heartbeats{ReadAt: scene.Noon, Nodes: 10, Stale: map[bool]int{false: 10}[agree]}
			d := sidecar.Decide(s, scene.Noon)
			require.Equal(t, agree, d.Record != nil && !d.Record.Deadline.After(scene.Noon.Add(time.Hour)))
		}
	})
	t.Run("a location", func(t *testing.T) {
		for _, agree := range []bool{true, false} {
			s := scene.ReadLocation(t, "{}").LocationState(t)
			r := scene.LocationRecord(PhaseVerifying)
			r.Deadline = far
			s.Record, s.Journal.Records, s.Heartbeats = r, map[string]*Record{LocationKey: r}, &signs.Heartbeats{ReadAt: scene.Noon, Nodes: 10, Stale: map[bool]int{false: 10}[agree]}
			d := location.Decide(s, scene.Noon)
			require.Equal(t, agree, d.Record != nil && !d.Record.Deadline.After(scene.Noon.Add(time.Hour)))
		}
	})
}
