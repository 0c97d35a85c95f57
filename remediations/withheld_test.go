package remediations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOnlyAWithheldCallIsGivenBack: the attempt is spent unless the process that made the intent withheld the call itself.
func TestOnlyAWithheldCallIsGivenBack(t *testing.T) {
	withheld := Call{IntentID: "r1-0-1", Outcome: CallRefused, Withheld: true, Why: "the intent is too old"}
	for name, c := range map[string]struct {
		change func(*Call, *Record)
		back   bool
	}{
		"withheld":                       {func(*Call, *Record) {}, true},
		"the provider refused":           {func(c *Call, _ *Record) { c.Withheld = false }, false},
		"nobody knows":                   {func(c *Call, _ *Record) { c.Outcome = CallUnknown }, false},
		"another attempt":                {func(c *Call, _ *Record) { c.IntentID = "r1-0-2" }, false},
		"again and again for a day":      {func(_ *Call, r *Record) { r.Began = noon.Add(-25 * time.Hour) }, false},
		"by a person, who may take days": {func(c *Call, r *Record) { c.WordOnNode, r.Began = true, noon.Add(-25*time.Hour) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scene{}).state(t)
			s.Node = unready(acting())
			r := ReadJournal(s.Node).Record
			r.Policy, r.Cause.Alert, r.Done, r.Deadline = "node-not-ready", fp, []string{"reboot:1"}, noon.Add(time.Minute)
			call := withheld
			c.change(&call, r)
			s.Journal.Record, s.Call = r, &call
			d := Decide(s, noon.Add(time.Second))
			if !c.back {
				require.Equal(t, []string{"reboot:1"}, append([]string{}, r.Done...))
				require.NotEqual(t, Keep, d.Verb)
				return
			}
			require.Equal(t, Keep, d.Verb)
			require.Equal(t, Pending, d.Record.Phase)
			require.Empty(t, d.Record.Done)
			again, err := DecodeRecord(d.Record.Encode())
			require.NoError(t, err)
			s.Journal.Record, s.Call = again, nil
			require.Equal(t, Keep, Decide(s, noon.Add(2*time.Second)).Verb, "it waits a moment")
			proven, missing := s.proven()
			require.False(t, proven)
			require.Contains(t, missing, "the intent is too old")
			again.Since = noon.Add(-2 * time.Minute)
			issued := Decide(s, noon)
			require.Equal(t, Issue, issued.Verb, issued.Message)
			require.Equal(t, StepRef{Name: "reboot", Attempt: 1}, issued.Record.Step)
			require.Equal(t, []string{"reboot:1"}, issued.Record.Done)

			// A process that led before may remember that the call was withheld: it says nothing of the next one.
			s.Journal.Record, s.Call = issued.Record, &call
			require.NotEqual(t, Keep, Decide(s, noon.Add(time.Second)).Verb, "the call that may be under way is not given back")
			over := issued.Record.clone()
			over.Phase, over.Intent.Outcome, over.Deadline = Verifying, CallUnknown, noon
			s.Journal.Record, s.Call = over, nil
			next, _ := s.nextStep(s.policy(), over.Step)
			d = Decide(s, noon.Add(time.Second))
			require.Equal(t, next, d.Record.Step, "what was issued is not issued again under the same attempt")
		})
	}
}

// TestARefusalInAClockJumpSetsNoFarDeadline: the process's clock is a month ahead when the refusal is settled, and right
// again a moment later.
func TestARefusalInAClockJumpSetsNoFarDeadline(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"a right clock": 0, "a month ahead": 30 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := (&scene{}).state(t)
			s.Node = acting()
			r := ReadJournal(s.Node).Record
			r.Policy, r.Cause.Alert, r.Done, r.Deadline = "node-not-ready", fp, []string{"reboot:1"}, noon.Add(time.Minute)
			s.Journal.Record, s.Call = r, &Call{IntentID: "r1-0-1", Outcome: CallRefused, Why: "no quota"}
			d := Decide(s, noon.Add(time.Second).Add(ahead))
			require.Equal(t, Verify, d.Verb)
			require.LessOrEqual(t, d.Record.Deadline.Sub(noon), 10*time.Minute)
			if ahead == 0 {
				require.Equal(t, noon.Add(time.Second).Add(refusedFor), d.Record.Deadline)
			}
		})
	}
}
