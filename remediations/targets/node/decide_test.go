package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// waiting returns the record of a repair that has done nothing yet, of the scene's alert.
func waiting() *Record {
	return &Record{
		V: RecordVersion, ID: "r1", Policy: "node-not-ready", Cause: Cause{Alert: scene.FP}, Phase: PhasePending, Step: StepRef{Name: "reboot", Attempt: 1},
		Began: scene.Noon.Add(-time.Hour), Since: scene.Noon.Add(-time.Hour), Deadline: scene.Noon.Add(time.Hour),
		Hold: lifecycle.NewHold(ReasonPaused, lifecycle.Because("a test"), scene.Noon.Add(-time.Hour)),
	}
}

// verifying returns the record of a reboot of the scene's node that waits for its proof.
func verifying(s *lifecycle.State) *Record {
	r := waiting()
	r.Phase, r.Hold, r.Done, r.Deadline = PhaseVerifying, nil, Attempts{{Name: "reboot", Number: 1}}, scene.Noon.Add(time.Minute)
	r.Intent = &Intent{ID: "r1-0-1", At: scene.Noon.Add(-time.Minute), Outcome: CallAccepted, BootID: "boot0", UID: string(s.Node.UID), ProviderID: s.Node.Spec.ProviderID}
	return r
}

// on writes the record on the Node.
func on(s *lifecycle.State, r *Record) {
	s.Node.Annotations[NodeRepairKey] = r.Encode()
	s.Journal = ReadJournal(s.Node)
}

// TestTimesFromTheFutureHaveTheLeasesReadOnce: a fresh count that does not confirm this clock is
// not read again at once.
func TestTimesFromTheFutureHaveTheLeasesReadOnce(t *testing.T) {
	for name, c := range map[string]struct {
		beats *signs.Heartbeats
		ask   bool
	}{
		"never read":    {nil, true},
		"read too long": {&signs.Heartbeats{ReadAt: scene.Noon.Add(-LookFor - 1), Nodes: 10, Stale: 10}, true},
		"read just now": {&signs.Heartbeats{ReadAt: scene.Noon, Nodes: 10, Stale: 10}, false},
	} {
		s := (&scene.Scene{Alerts: []scene.Alert{}}).State(t)
		s.Heartbeats = c.beats
		s.Journal.History = []Entry{{ID: "r1", Policy: "p", Outcome: OutcomeRecovered, Began: scene.Noon, Ended: scene.Noon.Add(24 * time.Hour)}}
		require.True(t, node.FromTheFuture(s, scene.Noon))
		require.Equal(t, c.ask, node.Decide(s, scene.Noon).Ask.Heartbeats, name)
	}
}

// TestTheRecordOfAnotherMachineIsRemovedBeforeAnythingElse: the machine that has the name now
// starts without it. The same record of this machine continues, which is the control.
func TestTheRecordOfAnotherMachineIsRemovedBeforeAnythingElse(t *testing.T) {
	s := (&scene.Scene{}).State(t)
	r := verifying(s)
	on(s, r)
	require.Equal(t, lifecycle.VerbWait, node.Decide(s, scene.Noon).Verb)
	r.Intent.UID, r.Intent.ProviderID = "uid-before", "civo://before"
	on(s, r)
	d := node.Decide(s, scene.Noon)
	require.Equal(t, lifecycle.VerbRest, d.Verb, d.Message)
	require.Contains(t, d.Prune, NodeRepairKey)
	require.Equal(t, OutcomeSuperseded, d.Ended.Outcome)
	require.Equal(t, "civo://before", d.Ended.Machine)
}

// TestACancelComesBeforeWhatAnEarlierRepairLeft: the person who cancels does not wait for the
// removal of an old cordon, which happens afterwards.
func TestACancelComesBeforeWhatAnEarlierRepairLeft(t *testing.T) {
	s := (&scene.Scene{Node: scene.Node{Cordoned: true}}).State(t)
	r := waiting()
	r.ID = "aaaaa1" // of the length of an ID: any other value of the annotation pauses the node
	on(s, r)
	s.Journal.History = []Entry{{ID: "r0", Ended: scene.Noon.Add(-time.Hour), Left: []Undo{{Kind: UndoCordon, At: scene.Noon.Add(-2 * time.Hour)}}}}
	require.Equal(t, "r0", node.Decide(s, scene.Noon).LeftOf, "the control")
	s.Node.Annotations[CancelKey] = r.ID
	d := node.Decide(s, scene.Noon)
	require.Equal(t, lifecycle.VerbEnd, d.Verb, d.Message)
	require.Equal(t, ByPerson, d.Ended.By)
	require.Empty(t, d.LeftOf)
}

// TestARecordThatCannotBeReadHoldsWhatIsNotUnderWay: a node without a repair, and one whose repair
// has run out. A repair under way continues to its end.
func TestARecordThatCannotBeReadHoldsWhatIsNotUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		record func(s *lifecycle.State) *Record
		held   bool
	}{
		"no repair": {func(*lifecycle.State) *Record { return nil }, true},
		"one that has run out": {func(s *lifecycle.State) *Record {
			return verifying(s).Exhausted(scene.Noon)
		}, true},
		"one under way": {verifying, false},
	} {
		s := (&scene.Scene{}).State(t)
		s.Node.Annotations[SidecarKey(scene.ThePod)] = "{"
		s.Journal = ReadJournal(s.Node)
		if r := c.record(s); r != nil {
			on(s, r)
		}
		require.Error(t, s.Journal.Malformed)
		require.Equal(t, c.held, node.Decide(s, scene.Noon).Reason == ReasonRecordMalformed, name)
	}
}

// TestAWaitingRecordIsOfItsPolicyAndItsPlan: where the alert is another policy's now, or the plan
// that waits for an approval was edited, a record with another id takes its place.
func TestAWaitingRecordIsOfItsPolicyAndItsPlan(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *lifecycle.State, r *Record)
		same   bool
	}{
		"nothing changed":  {func(*lifecycle.State, *Record) {}, true},
		"another policy's": {func(_ *lifecycle.State, r *Record) { r.Policy = "another" }, false},
		"another alert's":  {func(_ *lifecycle.State, r *Record) { r.Cause.Alert = "00000000000000aa" }, false},
		"the plan of the approval": {func(s *lifecycle.State, r *Record) {
			s.Config.Policies[0].Approval = true
			r.Plan = s.Config.Policies[0].Approved(s.Node)
		}, true},
		"another plan": {func(s *lifecycle.State, r *Record) {
			s.Config.Policies[0].Approval = true
			r.Plan = "an older one"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scene.Scene{}).State(t)
			r := waiting()
			c.change(s, r)
			on(s, r)
			d := node.Decide(s, scene.Noon)
			require.NotNil(t, d.Record, d.Message)
			require.Equal(t, c.same, d.Record.ID == "r1", d.Message)
		})
	}
}

// TestARepairContinuesTheOneThatItBeganWith: another cure in the ledger changes nothing about it.
func TestARepairContinuesTheOneThatItBeganWith(t *testing.T) {
	cure := ledger.Cure{Repair: "cured1", Policy: "node-not-ready", At: scene.Noon.Add(-5 * time.Minute), Step: StepRef{Name: "reboot", Attempt: 1}}
	for _, after := range []string{"", "cured0"} {
		s := (&scene.Scene{Policy: scene.Policy{Plan: []string{"reboot 3"}, RelapseWindow: "1h"}}).State(t)
		s.Ledger.Cures = map[string][]ledger.Cure{ledger.Machine(s.Node): {cure}}
		s.Journal.Alerts[0].ReceivedAt, s.Journal.Alerts[0].StartsAt = scene.Noon.Add(-time.Minute), scene.Noon.Add(-time.Minute)
		r := waiting()
		want := cure.Repair
		if after != "" {
			want, r.After = after, &After{ID: after, Step: StepRef{Name: "reboot", Attempt: 1}}
		}
		s.Journal.Record = r
		d := node.Decide(s, scene.Noon)
		require.NotNil(t, d.Record, d.Message)
		require.Equal(t, want, d.Record.After.ID)
	}
}

// TestARepairWhosePolicyIsOffEnds, as one whose policy is gone.
func TestARepairWhosePolicyIsOffEnds(t *testing.T) {
	for mode, ends := range map[Mode]bool{ModeEnforce: false, ModeOff: true} {
		s := (&scene.Scene{}).State(t)
		r := verifying(s)
		r.Deadline = scene.Noon
		on(s, r)
		s.Config.Policies[0].Mode = mode
		d := node.Decide(s, scene.Noon)
		require.Equal(t, ends, d.Ended != nil && d.Ended.Outcome == OutcomeCancelled, "%s: %s", mode, d.Message)
	}
}
