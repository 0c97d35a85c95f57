package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/targets/sidecar"
	"drydock.dev/drydock/remediations/testing/scene"
)

func TestWaitOfAStepThatThePlanHasNoMore(t *testing.T) {
	p := &Policy{Plan: []Step{{Name: "reboot", Wait: time.Hour}}}
	require.Equal(t, time.Hour, (&Config{}).WaitOf(p, StepRef{Name: "reboot"}))
	require.Equal(t, Shipped()["reboot"].Wait, (&Config{}).WaitOf(p, StepRef{Index: 1, Name: "reboot"}), "the plan became shorter")
	require.Equal(t, Shipped()["replace"].Wait, (&Config{}).WaitOf(p, StepRef{Name: "replace"}), "another step is there")
	require.Equal(t, Shipped()["promote-leader"].Wait, (&Config{}).WaitOf(nil, StepRef{Name: "promote-leader"}), "the policy is gone")
	require.Equal(t, 10*time.Minute, (&Config{}).WaitOf(p, StepRef{Name: "of another version"}))
}

// TestProofAtTheLastMoment starts from a node that has recovered, and changes one thing.
func TestProofAtTheLastMoment(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*lifecycle.State)
		verb   lifecycle.Verb
		ask    lifecycle.Ask
	}{
		"nothing changes": {func(*lifecycle.State) {}, lifecycle.VerbEnd, lifecycle.Ask{}},
		"the policy is gone": {func(s *lifecycle.State) {
			s.Config.Policies = nil
		}, lifecycle.VerbWait, lifecycle.Ask{}},
		"the alert said that it is over after the Alertmanagers were asked": {func(s *lifecycle.State) {
			s.Journal.Alerts[0].Status, s.LookSince = StatusResolved, s.Snapshot.AskedAt.Add(1)
		}, lifecycle.VerbWait, lifecycle.Ask{Alerts: true}},
		"the alert said that it is over before": {func(s *lifecycle.State) {
			s.Journal.Alerts[0].Status, s.LookSince = StatusResolved, s.Snapshot.AskedAt
		}, lifecycle.VerbEnd, lifecycle.Ask{}},
		"the alert did not say so": {func(s *lifecycle.State) {
			s.LookSince = s.Snapshot.AskedAt.Add(1)
		}, lifecycle.VerbEnd, lifecycle.Ask{}},
		"a stale lease that was read a while ago": {func(s *lifecycle.State) {
			s.Config.MaxStaleness, s.WellSince = time.Minute, time.Time{}
			s.Lease.ReadAt, s.Lease.RenewedAt = scene.Noon.Add(-node.LeaseAgain), scene.Noon.Add(-time.Hour)
		}, lifecycle.VerbWait, lifecycle.Ask{Lease: true}},
		"a stale lease that was read a moment ago": {func(s *lifecycle.State) {
			s.Config.MaxStaleness, s.WellSince = time.Minute, time.Time{}
			s.Lease.ReadAt, s.Lease.RenewedAt = scene.Noon.Add(-node.LeaseAgain+1), scene.Noon.Add(-time.Hour)
		}, lifecycle.VerbWait, lifecycle.Ask{}},
		"a fresh lease that was read before the end of proofFor": {func(s *lifecycle.State) {
			s.Lease.ReadAt = s.WellSince.Add(s.Config.Policies[0].ProofFor - 1)
		}, lifecycle.VerbWait, lifecycle.Ask{Lease: true}},
		"a fresh lease that was read at the end of proofFor, a while ago": {func(s *lifecycle.State) {
			s.Lease.ReadAt = s.WellSince.Add(s.Config.Policies[0].ProofFor)
		}, lifecycle.VerbEnd, lifecycle.Ask{}},
		"a fresh lease from before the reboot, whose proof is the new boot ID": {func(s *lifecycle.State) {
			s.Lease.RenewedAt = scene.Noon.Add(-39 * time.Second)
			s.Journal.Record.Intent.At, s.WellSince = scene.Noon.Add(-38*time.Second), scene.Noon.Add(-32*time.Second)
		}, lifecycle.VerbEnd, lifecycle.Ask{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.Golden{Input: "testdata/decide/recovered.input.yaml"}.State(t)
			c.change(s)
			d := node.Decide(s, scene.Noon)
			require.Equal(t, c.verb, d.Verb, d.Message)
			require.Equal(t, c.ask, d.Ask, d.Message)
		})
	}
}

// TestARestartIsProvenOnlyByALaterRenewalOfTheLease: the renewal's time is of the node's clock. If
// that clock is behind, a change of the renewal's time after the restart proves the renewal.
func TestARestartIsProvenOnlyByALaterRenewalOfTheLease(t *testing.T) {
	restart := scene.Noon.Add(-3 * time.Minute)
	for name, c := range map[string]struct {
		renewed, moved time.Time
		proven         bool
	}{
		"renewed since": {renewed: scene.Noon.Add(-4 * time.Second), proven: true},
		"renewed since, by a clock that is behind": {renewed: restart.Add(-time.Hour), moved: restart.Add(3*time.Minute - 10*time.Second), proven: true},
		"renewed before":                    {renewed: restart.Add(-time.Second)},
		"renewed before, and not only once": {renewed: restart.Add(-time.Second), moved: restart.Add(-11 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.Golden{Input: "testdata/decide/recovered-restart-kubelet.input.yaml"}.State(t)
			s.Lease.Duration, s.Lease.RenewedAt, s.Lease.MovedFrom = 5*time.Minute, c.renewed, c.moved
			require.True(t, s.Lease.Fresh())
			require.Equal(t, c.proven, node.Decide(s, scene.Noon).Verb == lifecycle.VerbEnd)
		})
	}
}

// TestALateAnswerIsRecordedOnce: only an answer to this attempt changes the record, and only while
// the record has none. Otherwise each pass would write the record again and move its deadline.
func TestALateAnswerIsRecordedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		intent               string
		outcome, had, record CallOutcome
	}{
		"accepted":                      {intent: "r1-0-1", outcome: CallAccepted, had: CallUnknown, record: CallAccepted},
		"refused":                       {intent: "r1-0-1", outcome: CallRefused, had: CallUnknown, record: CallRefused},
		"still unknown":                 {intent: "r1-0-1", outcome: CallUnknown, had: CallUnknown},
		"no answer yet":                 {intent: "r1-0-1", had: CallUnknown},
		"the answer to another attempt": {intent: "r1-0-2", outcome: CallAccepted, had: CallUnknown},
		"accepted, and it is on record": {intent: "r1-0-1", outcome: CallAccepted, had: CallAccepted},
		"refused, and it is on record":  {intent: "r1-0-1", outcome: CallRefused, had: CallRefused},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scene.Scene{}).State(t)
			r := verifying(s)
			r.Intent.Outcome, r.Deadline = c.had, scene.Noon.Add(9*time.Minute)
			on(s, r)
			s.Call = &lifecycle.Call{IntentID: c.intent, Outcome: c.outcome, Why: "a test"}
			d := node.Decide(s, scene.Noon)
			if c.record == "" {
				require.Equal(t, lifecycle.VerbWait, d.Verb, d.Message)
				require.Nil(t, d.Record, "nothing is written")
				return
			}
			require.Equal(t, lifecycle.VerbVerify, d.Verb, d.Message)
			require.Equal(t, c.record, d.Record.Intent.Outcome)
		})
	}
}

// TestAShorterWaitDoesNotEndAnAttemptThatWasIssued: while the deadline on record has not passed, a
// cure belongs to the attempt, although the policy's wait was made shorter since.
func TestAShorterWaitDoesNotEndAnAttemptThatWasIssued(t *testing.T) {
	s := scene.Golden{Input: "testdata/decide/recovered.input.yaml"}.State(t)
	s.Config.Policies[0].Plan[0].Wait = time.Minute
	d := node.Decide(s, scene.Noon)
	require.Equal(t, lifecycle.VerbEnd, d.Verb, d.Message)
	require.Equal(t, OutcomeRecovered, d.Ended.Outcome)
}

// TestAPolicyThatIsNoLongerConfiguredProvesNoCure: without the policy, its witness and proofFor are
// unknown. The repair of a node, a leader or a sidecar that would have recovered waits until its
// deadline, and is cancelled then.
func TestAPolicyThatIsNoLongerConfiguredProvesNoCure(t *testing.T) {
	for kind, of := range map[string]func() (*Config, *Record, func(now time.Time) lifecycle.Decision){
		"node": func() (*Config, *Record, func(now time.Time) lifecycle.Decision) {
			s := scene.Golden{Input: "testdata/decide/recovered.input.yaml"}.State(t)
			return s.Config, s.Journal.Record, func(now time.Time) lifecycle.Decision { return node.Decide(s, now) }
		},
		"leader": func() (*Config, *Record, func(now time.Time) lifecycle.Decision) {
			s := scene.Golden{Input: "../location/testdata/decide/recovered.input.yaml"}.LocationState(t)
			return s.Config, s.Record, func(now time.Time) lifecycle.Decision { return location.Decide(s, now) }
		},
		"sidecar": func() (*Config, *Record, func(now time.Time) lifecycle.Decision) {
			s := scene.Golden{Input: "../sidecar/testdata/decide/recovered.input.yaml"}.SidecarState(t)
			return s.Config, s.Record, func(now time.Time) lifecycle.Decision { return sidecar.Decide(s, now) }
		},
	} {
		t.Run(kind, func(t *testing.T) {
			conf, r, decide := of()
			d := decide(scene.Noon)
			require.Equal(t, lifecycle.VerbEnd, d.Verb, d.Message)
			require.Equal(t, OutcomeRecovered, d.Ended.Outcome)

			conf.Policies = nil
			d = decide(scene.Noon)
			require.Equal(t, lifecycle.VerbWait, d.Verb, d.Message)
			require.Equal(t, r.Deadline, d.Recheck)
			require.Contains(t, d.Message, "policy "+r.Policy+" is no longer configured, so no cure can be proven")
			d = decide(r.Deadline)
			require.Equal(t, lifecycle.VerbEnd, d.Verb, d.Message)
			require.Equal(t, OutcomeCancelled, d.Ended.Outcome)
		})
	}
}

// TestAReplacementByAPolicyThatIsNoLongerConfiguredIsNotProven: the replacement waits until its
// deadline, and then a person must check it.
func TestAReplacementByAPolicyThatIsNoLongerConfiguredIsNotProven(t *testing.T) {
	s := scene.Golden{Input: "testdata/successor/recovered.input.yaml"}.State(t)
	o := &s.Ledger.Orphans[0]
	s.Journal.Record = &o.Record
	d := node.DecideSuccessor(s, o, scene.Noon)
	require.Equal(t, lifecycle.VerbEnd, d.Verb, d.Message)
	require.Equal(t, OutcomeRecovered, d.Ended.Outcome)

	s.Config.Policies = nil
	d = node.DecideSuccessor(s, o, scene.Noon)
	require.Equal(t, lifecycle.VerbWait, d.Verb, d.Message)
	require.Equal(t, o.Record.WithoutPolicy(), d.Message)
	d = node.DecideSuccessor(s, o, o.Record.Intent.At.Add(Shipped()["replace"].Wait))
	require.Equal(t, lifecycle.VerbEnd, d.Verb, d.Message)
	require.Equal(t, OutcomeExhausted, d.Ended.Outcome)
	require.Contains(t, d.Message, o.Record.WithoutPolicy())
}

// TestProofOfAReplacementIsRequestedFromTheProvider: Drydock queries the provider for a step with
// such a proof, if the intent has the state from before the step.
func TestProofOfAReplacementIsRequestedFromTheProvider(t *testing.T) {
	for name, c := range map[string]struct {
		done   string
		before Before
		asked  time.Time
		about  string
		want   bool
	}{
		"never asked":                               {"replace:1", "{}", time.Time{}, "", true},
		"asked now":                                 {"replace:1", "{}", scene.Noon, "r1-0-1", false},
		"asked now about an earlier attempt":        {"replace:1", "{}", scene.Noon, "r1-0-0", true},
		"asked long enough ago":                     {"replace:1", "{}", scene.Noon.Add(-node.AskEvery), "r1-0-1", true},
		"asked in the future":                       {"replace:1", "{}", scene.Noon.Add(time.Second), "r1-0-1", true},
		"nobody knows what was there":               {"replace:1", "", time.Time{}, "", false},
		"a step with another proof":                 {"reboot:1", "{}", time.Time{}, "", false},
		"a step that switches off":                  {"powerOff:1", "{}", time.Time{}, "", true},
		"a pod, never asked":                        {"restart-kube-proxy:1", "{}", time.Time{}, "", true},
		"a pod, asked now":                          {"restart-kube-proxy:1", "{}", scene.Noon, "r1-0-1", false},
		"a pod, asked now about an earlier attempt": {"restart-kube-proxy:1", "{}", scene.Noon, "r1-0-0", true},
	} {
		r := &Record{Done: Attempts{AttemptOf(c.done)}, Intent: &Intent{ID: "r1-0-1", At: scene.Noon.Add(-time.Hour), Before: c.before}}
		s := &lifecycle.State{Config: scene.LimitsAlone(), Node: scene.Bare("n1"), Journal: Journal{Record: r}}
		switch asked := (Asked{Intent: c.about, At: c.asked}); {
		case c.about == "":
		case c.done == "restart-kube-proxy:1":
			s.Pods = &PodProof{Asked: asked}
		default:
			s.Replacement = &Replacement{Asked: asked}
		}
		d := lifecycle.Decision{Recheck: scene.Noon.Add(time.Hour)}
		node.Follow(s, &d, scene.Noon)
		require.Equal(t, c.want, d.Ask.Replacement, name)
	}
}

func TestWhatWasThereBeforeIsOfItsStep(t *testing.T) {
	replace, reboot := StepOn{Name: "replace"}, StepOn{Name: "reboot"}
	require.Empty(t, node.BeforeOf((*Survey)(nil), replace))
	require.Empty(t, node.BeforeOf((&Survey{Step: replace}), replace))
	v := &Survey{Step: replace, Before: `{"instance":"i1"}`}
	require.Empty(t, node.BeforeOf(v, reboot))
	require.Equal(t, v.Before, node.BeforeOf(v, replace))
	v.Before = "i1"
	require.Empty(t, node.BeforeOf(v, replace), "a record could not keep it")
}
