package remediations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaitOfAStepThatThePlanHasNoMore(t *testing.T) {
	p := &Policy{Plan: []Step{{Name: "reboot", Wait: time.Hour}}}
	require.Equal(t, time.Hour, p.waitOf(StepRef{Name: "reboot"}))
	require.Equal(t, reboot.Wait, p.waitOf(StepRef{Index: 1, Name: "reboot"}), "the plan became shorter")
	require.Equal(t, replace.Wait, p.waitOf(StepRef{Name: "replace"}), "another step is there")
	require.Equal(t, promoteLeader.Wait, (*Policy)(nil).waitOf(StepRef{Name: "promote-leader"}), "the policy is gone")
	require.Equal(t, unknownWait, p.waitOf(StepRef{Name: "of another version"}))
}

// TestProofAtTheLastMoment starts from a node that has recovered, and changes one thing.
func TestProofAtTheLastMoment(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*State)
		verb   Verb
		ask    Ask
	}{
		"nothing changes": {func(*State) {}, End, Ask{}},
		"the policy is gone": {func(s *State) {
			s.Config.Policies = nil
		}, Wait, Ask{}},
		"the alert said that it is over after the Alertmanagers were asked": {func(s *State) {
			s.Journal.Alerts[0].Status, s.LookSince = StatusResolved, s.Word.AskedAt.Add(1)
		}, Wait, Ask{Alerts: true}},
		"the alert said that it is over before": {func(s *State) {
			s.Journal.Alerts[0].Status, s.LookSince = StatusResolved, s.Word.AskedAt
		}, End, Ask{}},
		"the alert did not say so": {func(s *State) {
			s.LookSince = s.Word.AskedAt.Add(1)
		}, End, Ask{}},
		"a stale lease that was read a while ago": {func(s *State) {
			s.Config.MaxStaleness, s.WellSince = time.Minute, time.Time{}
			s.Lease.ReadAt, s.Lease.RenewedAt = noon.Add(-leaseAgain), noon.Add(-time.Hour)
		}, Wait, Ask{Lease: true}},
		"a stale lease that was read a moment ago": {func(s *State) {
			s.Config.MaxStaleness, s.WellSince = time.Minute, time.Time{}
			s.Lease.ReadAt, s.Lease.RenewedAt = noon.Add(-leaseAgain+1), noon.Add(-time.Hour)
		}, Wait, Ask{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := golden{input: "testdata/decide/recovered.input.yaml"}.state(t)
			c.change(s)
			d := Decide(s, noon)
			require.Equal(t, c.verb, d.Verb, d.Message)
			require.Equal(t, c.ask, d.Ask, d.Message)
		})
	}
}

// TestAPolicyThatIsNoLongerConfiguredProvesNoCure: nobody knows the policy's witness and proofFor any more. The repair of a node,
// a leader or a sidecar that would have recovered waits for its deadline, and is cancelled then.
func TestAPolicyThatIsNoLongerConfiguredProvesNoCure(t *testing.T) {
	for kind, scene := range map[string]func() (*Config, *Record, func(now time.Time) Decision){
		"node": func() (*Config, *Record, func(now time.Time) Decision) {
			s := golden{input: "testdata/decide/recovered.input.yaml"}.state(t)
			return s.Config, s.Journal.Record, func(now time.Time) Decision { return Decide(s, now) }
		},
		"leader": func() (*Config, *Record, func(now time.Time) Decision) {
			s := golden{input: "testdata/leader/recovered.input.yaml"}.locationState(t)
			return s.Config, s.Record, func(now time.Time) Decision { return DecideLocation(s, now) }
		},
		"sidecar": func() (*Config, *Record, func(now time.Time) Decision) {
			s := golden{input: "testdata/sidecar/recovered.input.yaml"}.sidecarState(t)
			return s.Config, s.Record, func(now time.Time) Decision { return DecideSidecar(s, now) }
		},
	} {
		t.Run(kind, func(t *testing.T) {
			conf, r, decide := scene()
			d := decide(noon)
			require.Equal(t, End, d.Verb, d.Message)
			require.Equal(t, Recovered, d.Ended.Outcome)

			conf.Policies = nil
			d = decide(noon)
			require.Equal(t, Wait, d.Verb, d.Message)
			require.Equal(t, r.Deadline, d.Recheck)
			require.Contains(t, d.Message, "policy "+r.Policy+" is no longer configured, so nothing says what proves a cure")
			d = decide(r.Deadline)
			require.Equal(t, End, d.Verb, d.Message)
			require.Equal(t, Cancelled, d.Ended.Outcome)
		})
	}
}

// TestAReplacementByAPolicyThatIsNoLongerConfiguredIsNotProven: it waits for its time, and a person looks.
func TestAReplacementByAPolicyThatIsNoLongerConfiguredIsNotProven(t *testing.T) {
	s := golden{input: "testdata/successor/recovered.input.yaml"}.state(t)
	o := &s.Ledger.Orphans[0]
	s.Journal.Record = &o.Record
	d := DecideSuccessor(s, o, noon)
	require.Equal(t, End, d.Verb, d.Message)
	require.Equal(t, Recovered, d.Ended.Outcome)

	s.Config.Policies = nil
	d = DecideSuccessor(s, o, noon)
	require.Equal(t, Wait, d.Verb, d.Message)
	require.Equal(t, o.Record.WithoutPolicy(), d.Message)
	d = DecideSuccessor(s, o, o.Record.Intent.At.Add(replace.Wait))
	require.Equal(t, End, d.Verb, d.Message)
	require.Equal(t, OutcomeExhausted, d.Ended.Outcome)
	require.Contains(t, d.Message, o.Record.WithoutPolicy())
}

// TestProofThatTheProviderGivesIsAskedFor: of a step that has such a proof, and while it can be told
// from what was there before.
func TestProofThatTheProviderGivesIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		done   string
		before Before
		asked  time.Time
		want   bool
	}{
		"never asked":                 {"replace:1", "{}", time.Time{}, true},
		"asked now":                   {"replace:1", "{}", noon, false},
		"asked long enough ago":       {"replace:1", "{}", noon.Add(-askEvery), true},
		"asked in the future":         {"replace:1", "{}", noon.Add(time.Second), true},
		"nobody knows what was there": {"replace:1", "", time.Time{}, false},
		"a step with another proof":   {"reboot:1", "{}", time.Time{}, false},
	} {
		r := &Record{Done: []string{c.done}, Intent: &Intent{ID: "r1-0-1", At: noon.Add(-time.Hour), Before: c.before}}
		s := &State{Config: limits(), Node: bare("n1"), Journal: Journal{Record: r}}
		if !c.asked.IsZero() {
			s.Replacement = &Replacement{Asked: Asked{Intent: "r1-0-1", At: c.asked}}
		}
		d := Decision{Recheck: noon.Add(time.Hour)}
		s.follow(&d, noon)
		require.Equal(t, c.want, d.Ask.Replacement, name)
	}
}

func TestWhatWasThereBeforeIsOfItsStep(t *testing.T) {
	replace, reboot := StepOn{Name: "replace"}, StepOn{Name: "reboot"}
	require.Empty(t, (*Survey)(nil).before(replace))
	require.Empty(t, (&Survey{Step: replace}).before(replace))
	v := &Survey{Step: replace, Before: `{"instance":"i1"}`}
	require.Empty(t, v.before(reboot))
	require.Equal(t, v.Before, v.before(replace))
	v.Before = "i1"
	require.Empty(t, v.before(replace), "a record could not keep it")
}
