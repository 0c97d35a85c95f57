package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

var callTime = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// TestTheAnswerOfACall: Call.answer returns the outcome, or why it is unknown. A call is under way
// only if this process made it, and only until its deadline.
func TestTheAnswerOfACall(t *testing.T) {
	for name, c := range map[string]struct {
		call     *Call
		deadline time.Time
		outcome  CallOutcome
		why      string
		underWay bool
	}{
		"no call":           {nil, callTime.Add(1), CallUnknown, "restarted or lost its lead", false},
		"another call":      {&Call{IntentID: "r1-0-2", Outcome: CallAccepted}, callTime.Add(1), CallUnknown, "restarted or lost its lead", false},
		"an outcome":        {&Call{IntentID: "r1-0-1", Outcome: CallRefused, Why: "no"}, callTime.Add(1), CallRefused, "no", false},
		"under way":         {&Call{IntentID: "r1-0-1"}, callTime.Add(1), CallUnknown, "no answer in time", true},
		"over its deadline": {&Call{IntentID: "r1-0-1"}, callTime, CallUnknown, "no answer in time", false},
	} {
		outcome, why, underWay := c.call.answer("r1-0-1", c.deadline, callTime)
		require.Equal(t, c.outcome, outcome, name)
		require.Contains(t, why, c.why, name)
		require.Equal(t, c.underWay, underWay, name)
	}
}

// TestWhichCallsWereWithheld: Call.withheld is true only for the call of the record's intent, if it
// certainly did nothing. tooLong needs a cause other than the target, and a repair that has been
// held for a day.
func TestWhichCallsWereWithheld(t *testing.T) {
	withheld := func(reason Reason) *Call {
		return &Call{IntentID: "r1-0-1", Outcome: CallRefused, Withheld: reason}
	}
	for name, c := range map[string]struct {
		call          *Call
		age           time.Duration
		back, tooLong bool
	}{
		"no call":                          {nil, PendingFor, false, false},
		"a call that was made":             {&Call{IntentID: "r1-0-1", Outcome: CallRefused}, PendingFor, false, false},
		"another call":                     {&Call{IntentID: "r1-0-2", Outcome: CallRefused, Withheld: ReasonCallWithheld}, PendingFor, false, false},
		"an unknown outcome":               {&Call{IntentID: "r1-0-1", Outcome: CallUnknown, Withheld: ReasonCallWithheld}, PendingFor, false, false},
		"withheld":                         {withheld(ReasonCallWithheld), PendingFor - 1, true, false},
		"withheld for a day":               {withheld(ReasonCallWithheld), PendingFor, true, true},
		"blind for a day":                  {withheld(ReasonBlind), PendingFor, true, true},
		"held by the target itself, a day": {withheld(ReasonPaused), PendingFor, true, false},
	} {
		back, tooLong := c.call.withheld(&Record{ID: "r1", Began: callTime.Add(-c.age), Intent: &Intent{ID: "r1-0-1"}}, callTime)
		require.Equal(t, c.back, back, name)
		require.Equal(t, c.tooLong, tooLong, name)
	}
}

// TestAnAttemptThatDidNothingIsGivenBack: giveBack returns the record as it was before the attempt,
// and Pending.
func TestAnAttemptThatDidNothingIsGivenBack(t *testing.T) {
	step := StepRef{Index: 1, Name: "reboot", Attempt: 1}
	record := func(change func(r *Record)) *Record {
		r := &Record{
			ID: "r1", Phase: PhaseActing, Step: step, Done: Attempts{{Name: "drain", Number: 1}, step.Issued()},
			Intent: &Intent{ID: "r1-1-1", Successor: "n9", Outcome: CallUnknown},
		}
		change(r)
		return r
	}
	asIs := func(*Record) {}
	give := func(r *Record, c *Call) *Record { return giveBack(r, c, nil, time.Minute, callTime).Record }

	got := give(record(asIs), &Call{Withheld: ReasonPaused, Why: "why"})
	require.Equal(t, Attempts{{Name: "drain", Number: 1}}, got.Done)
	require.Equal(t, Intent{Why: "why", Successor: "n9"}, *got.Intent)
	require.Equal(t, PhasePending, got.Phase)
	require.Equal(t, callTime.Add(PendingFor), got.Deadline)
	require.Equal(t, &Hold{Reason: ReasonPaused, Message: "nothing was done: why", Since: callTime}, got.Hold)
	require.Zero(t, got.Unreached, "the call did not fail")
	require.Equal(t, "the provider: nothing was done", give(record(asIs), &Call{Withheld: ReasonPaused, Why: "the provider: nothing was done"}).Hold.Message)
	require.Len(t, give(record(func(r *Record) { r.Done = r.Done[:1] }), &Call{}).Done, 1, "an earlier version noted no such attempt")
	require.Empty(t, give(record(func(r *Record) { r.Done = nil }), &Call{}).Done)

	move := func(to string) Move { return Move{To: to} }
	moved := give(record(func(r *Record) { r.Moves, r.Undo = []Move{move("n2"), move("n3")}, []Undo{{Key: "n2"}, {Key: "n3"}} }), &Call{})
	require.Equal(t, []Move{move("n2")}, moved.Moves)
	require.Equal(t, []Undo{{Key: "n2"}}, moved.Undo)
	require.Equal(t, "n2", moved.Intent.Successor, "the move before it")
	moved = give(record(func(r *Record) { r.Moves, r.Undo = []Move{move("n2")}, []Undo{{Key: "n2"}} }), &Call{})
	require.Empty(t, moved.Moves)
	require.Empty(t, moved.Intent.Successor)

	d := giveBack(record(asIs), &Call{Why: "no account", Stop: true}, nil, time.Minute, callTime)
	require.Equal(t, "no account", d.Stop)
	require.Empty(t, giveBack(record(asIs), &Call{Why: "no account"}, nil, time.Minute, callTime).Stop)
	require.Equal(t, callTime.Add(time.Minute), d.Recheck)
}

// TestCallsThatFailInARowAreHeldTogether: after the fifth failed call the reason
// ProviderUnreachable holds the step, with a longer wait. A failure that concerns all machines sets
// the count Alone to zero.
func TestCallsThatFailInARowAreHeldTogether(t *testing.T) {
	r := &Record{ID: "r1", Phase: PhaseActing, Step: StepRef{Name: "reboot", Attempt: 1}, Intent: &Intent{}}
	for n := 1; n <= 6; n++ {
		d := giveBack(r, &Call{Withheld: ReasonCallWithheld, Why: "no route", Alone: true}, nil, time.Minute, callTime)
		r = d.Record
		require.Equal(t, n, r.Unreached)
		require.Equal(t, n, r.Alone)
		require.Equal(t, n >= unreachableAfter, unreachable(r))
		require.Equal(t, n >= unreachableAfter, UnreachableAlone(r))
		want, wait := ReasonCallWithheld, time.Minute
		if n >= unreachableAfter {
			want, wait = ReasonProviderUnreachable, CallAgain
			require.Contains(t, d.Message, "calls in a row")
		}
		require.Equal(t, want, d.Reason)
		require.Equal(t, callTime.Add(wait), d.Recheck)
	}
	d := giveBack(r, &Call{Withheld: ReasonCallWithheld, Why: "no route"}, nil, time.Minute, callTime)
	require.Zero(t, d.Record.Alone)
	require.Equal(t, 7, d.Record.Unreached)
	require.False(t, unreachable(nil))
	require.False(t, UnreachableAlone(nil))
}

// TestTheNextCallWaitsAsLongAsTheProviderAsks: Drydock rounds the provider's wait up to a second
// and limits it to againLongest. The wait is never shorter than Drydock's own.
func TestTheNextCallWaitsAsLongAsTheProviderAsks(t *testing.T) {
	record := func() *Record {
		return &Record{ID: "r1", Phase: PhaseActing, Step: StepRef{Name: "reboot", Attempt: 1}, Intent: &Intent{}}
	}
	for again, wait := range map[time.Duration]time.Duration{
		0: time.Minute, time.Minute: time.Minute, time.Minute + 1: time.Minute + time.Second, 4 * time.Minute: 4 * time.Minute, 100 * againLongest: againLongest,
	} {
		d := giveBack(record(), &Call{Withheld: ReasonCallWithheld, Why: "busy", Again: again}, nil, time.Minute, callTime)
		require.Equal(t, callTime.Add(wait), d.Recheck, again)
		require.Equal(t, again > time.Minute, d.Record.Hold.Until != nil, again)

		held, waits := AfterWithheld(d.Record, nil, time.Minute, callTime.Add(wait-1))
		require.True(t, waits, again)
		require.Equal(t, callTime.Add(wait), held.Recheck, again)
		_, waits = AfterWithheld(d.Record, nil, time.Minute, callTime.Add(wait))
		require.False(t, waits, again)
		_, waits = AfterWithheld(d.Record, nil, time.Minute, callTime)
		require.True(t, waits, "%s: the wait has just begun", again)
		_, waits = AfterWithheld(d.Record, nil, time.Minute, callTime.Add(-1))
		require.False(t, waits, "the clock was set back")
	}
}

// TestOnlyAWithheldAttemptWaits: AfterWithheld holds only a withheld attempt, until the end of its
// own hold. After several failed calls in a row the wait is longer.
func TestOnlyAWithheldAttemptWaits(t *testing.T) {
	until, far := callTime.Add(3*time.Minute), callTime.Add(time.Hour)
	for name, c := range map[string]struct {
		change func(r *Record)
		wait   time.Duration
	}{
		"withheld":                     {func(*Record) {}, time.Minute},
		"with an end":                  {func(r *Record) { r.Hold.Until = &until }, 3 * time.Minute},
		"with the end of another hold": {func(r *Record) { r.Hold.Until, r.Hold.Since = &until, callTime.Add(time.Second) }, time.Minute},
		"with an end too far ahead":    {func(r *Record) { r.Hold.Until = &far }, againLongest + time.Second},
		"after calls that failed":      {func(r *Record) { r.Unreached = unreachableAfter }, CallAgain},
		"issued":                       {func(r *Record) { r.Intent.ID = "r1-0-1" }, 0},
		"held by nothing":              {func(r *Record) { r.Hold = nil }, 0},
	} {
		r := &Record{ID: "r1", Phase: PhasePending, Since: callTime, Intent: &Intent{}, Hold: &Hold{Reason: ReasonCallWithheld, Since: callTime}}
		c.change(r)
		d, waits := AfterWithheld(r, nil, time.Minute, callTime.Add(time.Second))
		require.Equal(t, c.wait > 0, waits, name)
		if waits {
			require.Equal(t, callTime.Add(c.wait), d.Recheck, name)
		}
	}
}

// TestWhichStepsOfAPlanAreLeft: a step is left if the plan has it, this installation can carry it
// out, and the repair has not yet used it up. A drain is left out if no later step is left.
func TestWhichStepsOfAPlanAreLeft(t *testing.T) {
	p := &Policy{Name: "p", Plan: []Step{{Name: "drain", Attempts: 1}, {Name: "reboot", Attempts: 2}, {Name: "drain", Attempts: 1}, {Name: "replace", Attempts: 1}}}
	all := map[string]bool{"drain": true, "reboot": true, "replace": true, "powerOff": true}
	for name, c := range map[string]struct {
		provided map[string]bool
		r        *Record
		after    *StepRef
		want     StepRef
	}{
		"the first step":                {all, nil, nil, StepRef{Name: "drain", Attempt: 1}},
		"the next step":                 {all, nil, &StepRef{Index: 0, Name: "drain", Attempt: 1}, StepRef{Index: 1, Name: "reboot", Attempt: 1}},
		"the next attempt":              {all, nil, &StepRef{Index: 1, Name: "reboot", Attempt: 1}, StepRef{Index: 1, Name: "reboot", Attempt: 2}},
		"after the last attempt":        {all, nil, &StepRef{Index: 1, Name: "reboot", Attempt: 2}, StepRef{Index: 2, Name: "drain", Attempt: 1}},
		"after the last step":           {all, nil, &StepRef{Index: 3, Name: "replace", Attempt: 1}, StepRef{}},
		"nothing that a drain prepares": {map[string]bool{"drain": true}, nil, nil, StepRef{}},
		"a reboot, and no replacement":  {map[string]bool{"drain": true, "reboot": true}, nil, &StepRef{Index: 1, Name: "reboot", Attempt: 2}, StepRef{}},
		"its first attempt was issued":  {all, &Record{Policy: "p", After: &After{Step: StepRef{Index: 1, Name: "reboot", Attempt: 1}}}, &StepRef{Index: 0, Name: "drain", Attempt: 1}, StepRef{Index: 1, Name: "reboot", Attempt: 2}},
		"it was passed over":            {all, &Record{Policy: "p", Passed: []Passed{{Index: 1, Name: "reboot"}}}, &StepRef{Index: 0, Name: "drain", Attempt: 1}, StepRef{Index: 2, Name: "drain", Attempt: 1}},
	} {
		s := &State{Config: &Config{Provided: c.provided}, Node: &corev1.Node{}}
		got, ok := s.FirstStep(p, c.r)
		if c.after != nil {
			got, ok = s.NextStep(p, c.r, *c.after)
		}
		require.Equal(t, c.want != StepRef{}, ok, name)
		require.Equal(t, c.want, got, name)
	}
	off := &Policy{Name: "p", Plan: []Step{{Name: "powerOff", Attempts: 1}, {Name: "drain", Attempts: 1}}}
	s := &State{Config: &Config{Provided: all}, Node: &corev1.Node{}}
	require.True(t, s.Doable(off, &Record{}, StepRef{Name: "powerOff", Attempt: 1}))
	isOff := &Record{Undo: []Undo{{Kind: UndoTaint, BootID: "b1"}}}
	require.False(t, s.Doable(off, isOff, StepRef{Name: "powerOff", Attempt: 1}), "it is off")
	require.True(t, s.Doable(off, isOff, StepRef{Index: 1, Name: "drain", Attempt: 1}))
	s.Node.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	require.False(t, s.Doable(off, nil, StepRef{Name: "powerOff", Attempt: 1}), "the step refuses a control-plane node")
	require.True(t, s.Doable(off, nil, StepRef{Index: 1, Name: "drain", Attempt: 1}))
}

// TestBreakGlassHoldsForAnHour: the hour begins when the ledger first has this value of the
// annotation.
func TestBreakGlassHoldsForAnHour(t *testing.T) {
	n := &corev1.Node{}
	n.Name, n.Annotations = "n1", map[string]string{BreakGlassKey: "why"}
	s := &State{Node: n, Ledger: &ledger.Ledger{Status: ledger.Status{BreakGlass: map[string]ledger.BreakGlass{"n1": {Since: callTime, Why: "why"}}}}}
	require.False(t, s.BreakGlassExpired(callTime.Add(BreakGlassFor-1)))
	require.True(t, s.BreakGlassExpired(callTime.Add(BreakGlassFor)))
	n.Annotations[BreakGlassKey] = "another reason"
	require.False(t, s.BreakGlassExpired(callTime.Add(BreakGlassFor)), "another value begins another hour")
	require.Zero(t, s.BreakGlassSince())
	s.Ledger = nil
	require.Zero(t, s.BreakGlassSince(), "without the ledger the time is unknown")
}

// TestAFailureHoldsRepairsAfterAMinute: Lost is true only after OutageFor.
func TestAFailureHoldsRepairsAfterAMinute(t *testing.T) {
	require.False(t, Lost(time.Time{}, callTime))
	require.False(t, Lost(callTime, callTime.Add(OutageFor-1)))
	require.True(t, Lost(callTime, callTime.Add(OutageFor)))
}

// TestWhichKindsOfTargetsAGuardIsFor lists the kinds that each set of kinds has.
func TestWhichKindsOfTargetsAGuardIsFor(t *testing.T) {
	all := []Kind{KindNode, KindSidecar, KindLocation, KindAPIServer}
	for name, c := range map[string]struct {
		of   kindSet
		want []Kind
	}{
		"all": {ofAll, all}, "nodes": {ofNodes, all[:1]}, "beside nodes": {besideNodes, all[1:]}, "on nodes": {onNodes, all[:3]},
		"on nodes, no sidecars": {onNodesButSidecars, []Kind{KindNode, KindLocation}}, "on nodes, no nodes": {onNodesBesideNodes, all[1:3]},
		"nodes and API servers": {ofNodesAndOfAPIServers, []Kind{KindNode, KindAPIServer}},
	} {
		var got []string
		for _, k := range all {
			if c.of(k) {
				got = append(got, string(k))
			}
		}
		var want []string
		for _, k := range c.want {
			want = append(want, string(k))
		}
		require.Equal(t, strings.Join(want, " "), strings.Join(got, " "), name)
	}
}
