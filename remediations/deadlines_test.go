package remediations_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// TestAForgedDeadlineLastsNoLongerThanItsPhase: a person writes a record whose deadline is years
// away, and the ledger has no slot for it. The record counts against the limits only for as long as
// its phase may last, plus OverdueFor.
func TestAForgedDeadlineLastsNoLongerThanItsPhase(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	c := &Config{}
	p := &Policy{Name: "p", Mode: ModeEnforce, Plan: []Step{{Name: "reboot", Wait: 40 * time.Minute, Attempts: 1}, {Name: "drain", Timeout: 25 * time.Minute, Attempts: 1}}}
	c.Policies = []*Policy{p}
	for name, s := range map[string]struct {
		phase Phase
		step  StepRef
		want  time.Duration
	}{
		"a call":             {PhaseActing, StepRef{Index: 0, Name: "reboot", Attempt: 1}, ActingFor},
		"a drain":            {PhaseActing, StepRef{Index: 1, Name: "drain", Attempt: 1}, 25 * time.Minute},
		"a proof":            {PhaseVerifying, StepRef{Index: 0, Name: "reboot", Attempt: 1}, 40 * time.Minute},
		"what has not begun": {PhasePending, StepRef{Index: 0, Name: "reboot", Attempt: 1}, PendingFor},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Record{ID: "r1", Policy: "p", Phase: s.phase, Step: s.step, Began: now, Since: now, Deadline: FarAway, Intent: &Intent{ID: "r1-0-1", At: now}}
			clamped, changed := c.Clamped(p, r, now)
			require.True(t, changed)
			require.Equal(t, s.want, clamped.Deadline.Sub(now))
			from, until := c.Flight(&corev1.Node{}, r)
			require.Equal(t, now, from)
			require.Equal(t, ActingFor+s.want+OverdueFor, until.Sub(now))
		})
	}
}

// TestHowLongAPhaseMayLast: Clamped replaces a deadline that is years away by the latest possible
// end of the record's phase.
func TestHowLongAPhaseMayLast(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	c := &Config{}
	p := &Policy{Name: "p", Mode: ModeEnforce, Plan: []Step{{Name: "reboot", Wait: 40 * time.Minute, Attempts: 1}}}
	for name, s := range map[string]struct {
		record Record
		want   time.Duration
	}{
		"a drain that is no step of the plan": {Record{Phase: PhaseActing, Step: StepRef{Index: 3, Name: "drain", Attempt: 1}}, time.Hour},
		"a leader that is put back":           {Record{Phase: PhaseVerifying, Step: StepRef{Name: "reboot", Attempt: 1}, Back: &now}, BackFor},
	} {
		r := s.record
		r.ID, r.Policy, r.Began, r.Since, r.Deadline = "r1", "p", now, now, FarAway
		clamped, changed := c.Clamped(p, &r, now)
		require.True(t, changed, name)
		require.Equal(t, s.want, clamped.Deadline.Sub(now), name)
	}
}

// TestARepairOfAnObservedPolicyIsNotInFlight: Drydock never writes a record in flight for a policy
// that only observes. If a person writes one, it must not hold other repairs.
func TestARepairOfAnObservedPolicyIsNotInFlight(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	r := &Record{ID: "r1", Policy: "p", Phase: PhaseVerifying, Step: StepRef{Name: "reboot", Attempt: 1}, Began: now, Since: now, Deadline: now.Add(time.Minute), Intent: &Intent{ID: "r1-0-1", At: now}}
	for mode, counts := range map[Mode]bool{ModeEnforce: true, ModeObserve: false, ModeOff: false} {
		c := &Config{Policies: []*Policy{{Name: "p", Mode: mode}}}
		from, until := c.Flight(&corev1.Node{}, r)
		require.Equal(t, counts, InFlightAt(from, until, now), mode)
	}
}

func TestARecordIsInFlightFromItsIntentToItsEnd(t *testing.T) {
	from := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	until := from.Add(time.Hour)
	for _, c := range []struct {
		at   time.Duration
		want bool
	}{{-time.Hour, false}, {-2 * time.Minute, false}, {-time.Minute, true}, {0, true}, {59 * time.Minute, true}, {time.Hour, false}} {
		require.Equal(t, c.want, InFlightAt(from, until, from.Add(c.at)), c.at)
	}
}

// TestWhatOnlyTheModeHoldsHasAPlaceForItsTime: a would-be repair counts against the limits for as
// long as its step may take. A repair that another reason holds does not count.
func TestWhatOnlyTheModeHoldsHasAPlaceForItsTime(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	c := &Config{}
	p := &Policy{Name: "p", Plan: []Step{{Name: "reboot", Wait: 40 * time.Minute, Attempts: 1}, {Name: "drain", Timeout: 25 * time.Minute, Attempts: 1}}}
	record := func(index int, name string, phase Phase, reason Reason) *Record {
		return &Record{Phase: phase, Step: StepRef{Index: index, Name: name, Attempt: 1}, Hold: &Hold{Reason: reason, Since: now}}
	}
	require.Equal(t, now.Add(40*time.Minute), c.WouldUntil(p, record(0, "reboot", PhasePending, ReasonObserving)))
	require.Equal(t, now.Add(25*time.Minute), c.WouldUntil(p, record(1, "drain", PhasePending, ReasonObserving)))
	require.Zero(t, c.WouldUntil(p, record(0, "reboot", PhaseVerifying, ReasonObserving)))
	require.Zero(t, c.WouldUntil(p, record(0, "reboot", PhasePending, ReasonPaused)))
	require.Zero(t, c.WouldUntil(p, nil))
}

func TestTheLongestWaitIsOfAPolicyThatIsOn(t *testing.T) {
	p := &Policy{Name: "p", Mode: ModeEnforce, Plan: []Step{{Name: "reboot", Wait: 3 * time.Hour}, {Name: "replace", Wait: time.Minute}}}
	c := &Config{Policies: []*Policy{p}}
	require.Equal(t, 3*time.Hour, c.LongestWait())
	p.Mode = ModeOff
	require.Equal(t, ActingFor, c.LongestWait())
}

func TestClocksAgreeOnlyByAFreshReadingOfMostLeases(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		h    *signs.Heartbeats
		want bool
	}{
		"most are fresh":          {&signs.Heartbeats{ReadAt: now, Nodes: 5, Stale: 2}, true},
		"half are stale":          {&signs.Heartbeats{ReadAt: now, Nodes: 4, Stale: 2}, false},
		"as old as may be":        {&signs.Heartbeats{ReadAt: now.Add(-LookFor), Nodes: 5}, true},
		"an old reading":          {&signs.Heartbeats{ReadAt: now.Add(-LookFor - time.Second), Nodes: 5}, false},
		"a reading in an hour":    {&signs.Heartbeats{ReadAt: now.Add(time.Hour), Nodes: 5}, false},
		"nothing has been read":   {nil, false},
		"a cluster without Nodes": {&signs.Heartbeats{ReadAt: now}, false},
	} {
		require.Equal(t, c.want, ClocksAgree(c.h, now), name)
	}
}

func TestTimesFromTheFutureAreFromNow(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	r := &Record{Phase: PhasePending, Began: now, Since: now, Deadline: now.Add(time.Minute), Hold: &Hold{Reason: ReasonPaused, Since: now.Add(time.Hour)}}
	clamped, changed := (&Config{}).Clamped(nil, r, now)
	require.True(t, changed)
	require.Equal(t, now, clamped.Hold.Since)
	r.Hold, r.Intent = nil, &Intent{At: now.Add(time.Hour)}
	clamped, changed = (&Config{}).Clamped(nil, r, now)
	require.True(t, changed)
	require.Equal(t, now, clamped.Intent.At)
	r.Intent = nil
	_, changed = (&Config{}).Clamped(nil, r, now)
	require.False(t, changed)
}

func TestTheLaterOfTwoTimes(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	require.Equal(t, now.Add(time.Second), Later(now, now.Add(time.Second)))
	require.Equal(t, now.Add(time.Second), Later(now.Add(time.Second), now))
}
