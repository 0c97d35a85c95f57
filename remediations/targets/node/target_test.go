package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestADrainedNodeCountsForItsPlaceAtThatTime: the limits count a drained node in the zone and pool
// of its drain, and as a control-plane node if it was one at any time during the repair. A step
// without a drain has no place of its own.
func TestADrainedNodeCountsForItsPlaceAtThatTime(t *testing.T) {
	const control = "node-role.kubernetes.io/control-plane"
	drained := func(was Intent) func(*lifecycle.State) {
		return func(s *lifecycle.State) {
			r := s.Journal.Record
			r.Intent.Zone, r.Intent.Pool, r.Intent.ControlPlane = was.Zone, was.Pool, was.ControlPlane
		}
	}
	here := map[string]string{"zone": "z2", "pool": "p2"}
	for name, c := range map[string]struct {
		done   Attempts // of the record; nil: the repair begins
		plan   []string
		labels map[string]string
		change func(*lifecycle.State)
		place  Intent
	}{
		"a reboot":                                  {nil, []string{"reboot"}, map[string]string{"zone": "z2", "pool": "p2", control: ""}, nil, Intent{}},
		"a drain":                                   {nil, []string{"drain", "reboot"}, here, nil, Intent{Zone: "z2", Pool: "p2"}},
		"a drain of a control-plane node":           {nil, []string{"drain", "reboot"}, map[string]string{control: ""}, nil, Intent{ControlPlane: true}},
		"after a drain elsewhere":                   {Attempts{{Name: "drain", Number: 1}}, []string{"drain", "reboot"}, here, drained(Intent{Zone: "z1", Pool: "p1"}), Intent{Zone: "z1", Pool: "p1"}},
		"after a drain of an older version":         {Attempts{{Name: "drain", Number: 1}}, []string{"drain", "reboot"}, here, drained(Intent{}), Intent{Zone: "z2", Pool: "p2"}},
		"drained as a control-plane node":           {Attempts{{Name: "drain", Number: 1}}, []string{"drain", "reboot"}, nil, drained(Intent{ControlPlane: true}), Intent{ControlPlane: true}},
		"drained before it was a control-plane one": {Attempts{{Name: "drain", Number: 1}}, []string{"drain", "reboot"}, map[string]string{control: ""}, drained(Intent{}), Intent{ControlPlane: true}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := scene.Scene{Policy: scene.Policy{Plan: c.plan}, Provided: []string{"drain", "reboot"}, Node: scene.Node{Labels: c.labels, Cordoned: c.done != nil}, Fleet: scene.Fleet{ControlPlane: 2}}
			s := sc.State(t)
			if c.done != nil {
				r := verifying(s)
				r.Phase, r.Step, r.Done, r.Undo = PhaseActing, StepRef{Name: "drain", Attempt: 1}, c.done, []Undo{{Kind: UndoCordon, At: scene.Noon.Add(-time.Minute)}}
				r.Intent.Outcome = ""
				s.Journal.Record, s.Call = r, &lifecycle.Call{IntentID: r.Intent.ID, Outcome: CallAccepted}
				c.change(s)
			}
			d := node.Decide(s, scene.Noon)
			require.Equal(t, lifecycle.VerbIssue, d.Verb, d.Message)
			i := d.Record.Intent
			got := Intent{Zone: i.Zone, Pool: i.Pool, ControlPlane: i.ControlPlane}
			require.Equal(t, c.place, got)
		})
	}
}

// TestNoStepIsTakenOnAMachineWithTwoNodes: a step on one of the Nodes would reach the machine of
// the other.
func TestNoStepIsTakenOnAMachineWithTwoNodes(t *testing.T) {
	for name, c := range map[string]struct {
		other string
		verb  lifecycle.Verb
	}{
		"a machine of its own":           {"civo://n2", lifecycle.VerbIssue},
		"the other Node has the machine": {"civo://n1", lifecycle.VerbHold},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scene.Scene{}).State(t)
			others := scene.Herd(9, 0)
			others[0].Spec.ProviderID = c.other
			s.Fleet = scene.FleetOf(s.Config, append(others, s.Node), s.Ledger, scene.Noon)
			d := node.Decide(s, scene.Noon)
			require.Equal(t, c.verb, d.Verb, d.Message)
			if c.verb == lifecycle.VerbHold {
				require.Equal(t, ReasonProviderAbsent, d.Reason, d.Message)
				require.Contains(t, d.Message, `have the same spec.providerID "civo://n1"`)
			}
		})
	}
}

// TestAHeldNodeIsReadAgainOnlyForItsHold: old leases and old readings of the witness are read again
// only if they hold the repair.
func TestAHeldNodeIsReadAgainOnlyForItsHold(t *testing.T) {
	const pod = "pod kube-system/kube-proxy"
	paused := func(s *lifecycle.State) { s.Node.Annotations[PauseKey] = "true" }
	leases := func(age time.Duration, stale int) func(*lifecycle.State) {
		return func(s *lifecycle.State) {
			s.Heartbeats = &signs.Heartbeats{ReadAt: scene.Noon.Add(-age), Nodes: 10, Stale: stale}
		}
	}
	witness := func(age time.Duration) func(*lifecycle.State) {
		return func(s *lifecycle.State) {
			s.Config.Policies[0].Witness = scene.WitnessOf(pod)
			s.Read = map[signs.Sign]signs.Testimony{scene.SignOf(pod): {Answer: signs.Well, At: scene.Noon.Add(-age)}}
		}
	}
	unwatched := func(s *lifecycle.State) { s.Snapshot.WatchdogMisses = -1 }
	for name, c := range map[string]struct {
		changes []func(*lifecycle.State)
		reason  Reason
		ask     lifecycle.Ask
	}{
		"stale leases, counted long ago":              {[]func(*lifecycle.State){leases(time.Minute, 10)}, ReasonBlind, lifecycle.Ask{Heartbeats: true}},
		"stale leases, counted just now":              {[]func(*lifecycle.State){leases(time.Second, 10)}, ReasonBlind, lifecycle.Ask{}},
		"stale leases, and the node is paused":        {[]func(*lifecycle.State){leases(time.Minute, 10), paused}, ReasonPaused, lifecycle.Ask{}},
		"fresh leases, and there is no Watchdog":      {[]func(*lifecycle.State){leases(time.Minute, 0), unwatched}, ReasonBlind, lifecycle.Ask{}},
		"a witness that was read a while ago":         {[]func(*lifecycle.State){witness(30 * time.Second)}, ReasonNotWitnessed, lifecycle.Ask{Witness: true}},
		"a witness that was read just now":            {[]func(*lifecycle.State){witness(time.Second)}, ReasonNotWitnessed, lifecycle.Ask{}},
		"a witness of a while ago on a paused node":   {[]func(*lifecycle.State){witness(30 * time.Second), paused}, ReasonPaused, lifecycle.Ask{}},
		"no answer of the provider, as it never came": {[]func(*lifecycle.State){func(s *lifecycle.State) { s.Survey = nil }, paused}, ReasonPaused, lifecycle.Ask{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scene.Scene{}).State(t)
			for _, change := range c.changes {
				change(s)
			}
			d := node.Decide(s, scene.Noon)
			require.Equal(t, lifecycle.VerbHold, d.Verb, d.Message)
			require.Equal(t, c.reason, d.Reason, d.Message)
			require.Equal(t, c.ask, d.Ask)
		})
	}
}

// TestOnlyTheHoldOfAnUnreachableMachineCounts: a node whose provider cannot reach it is paused. The
// hold for the pause does not count as time while the machine alone was unreachable.
func TestOnlyTheHoldOfAnUnreachableMachineCounts(t *testing.T) {
	for name, paused := range map[string]bool{"held for the provider": false, "paused": true} {
		t.Run(name, func(t *testing.T) {
			s := scene.Read(t, []byte("survey: {step: reboot, trouble: the BMC does not answer, unreached: true}")).State(t)
			if paused {
				s.Node.Annotations[PauseKey] = "true"
			}
			d := node.Decide(s, scene.Noon)
			require.NotNil(t, d.Record, d.Message)
			require.Equal(t, !paused, d.Record.Hold.Alone)
		})
	}
}

// TestARequestIsOnRecordBeforeItIsHeld: otherwise its annotation stays, and the same request begins
// again after its end. A hold of all nodes is written once for a request, and never for an alert.
func TestARequestIsOnRecordBeforeItIsHeld(t *testing.T) {
	requested := func(s *lifecycle.State) { s.Node.Annotations[RequestKey] = "remediation/reboot" }
	record := func(cause Cause, policy string) func(*lifecycle.State) {
		return func(s *lifecycle.State) {
			r := waiting()
			r.Cause, r.Policy, r.Hold = cause, policy, lifecycle.NewHold(ReasonBlind, lifecycle.Because("no Watchdog"), scene.Noon.Add(-time.Hour))
			on(s, r)
		}
	}
	for name, c := range map[string]struct {
		changes []func(*lifecycle.State)
		writes  bool
	}{
		"an alert":                           {nil, false},
		"a request":                          {[]func(*lifecycle.State){requested}, true},
		"a request while an alert waits":     {[]func(*lifecycle.State){requested, record(Cause{Alert: scene.FP}, "node-not-ready")}, true},
		"a request that is on record":        {[]func(*lifecycle.State){record(Cause{Request: "remediation/reboot"}, "remediation/reboot")}, false},
		"an alert whose repair is on record": {[]func(*lifecycle.State){record(Cause{Alert: scene.FP}, "node-not-ready")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scene.Scene{}).State(t)
			s.Snapshot.WatchdogMisses = -1
			for _, change := range c.changes {
				change(s)
			}
			d := node.Decide(s, scene.Noon)
			require.Equal(t, ReasonBlind, d.Reason, d.Message)
			require.Equal(t, c.writes, d.Record != nil)
			if c.writes {
				require.Equal(t, "remediation/reboot", d.Record.Cause.Request)
				require.Contains(t, d.Consume, RequestKey)
			}
		})
	}
}

// TestADeadlineFarAheadEndsOnlyByARightClock: no repair can have a deadline so far in the future.
// The wait for its proof ends then, but not if the leases do not confirm this clock.
func TestADeadlineFarAheadEndsOnlyByARightClock(t *testing.T) {
	for name, c := range map[string]struct {
		deadline time.Time
		beats    *signs.Heartbeats
		waits    bool
	}{
		"the leases confirm this clock":              {scene.Noon.Add(48 * time.Hour), &signs.Heartbeats{ReadAt: scene.Noon, Nodes: 10}, false},
		"the leases do not confirm this clock":       {scene.Noon.Add(48 * time.Hour), &signs.Heartbeats{ReadAt: scene.Noon, Nodes: 10, Stale: 10}, true},
		"the leases have not been counted":           {scene.Noon.Add(48 * time.Hour), nil, true},
		"a near deadline and leases that confirm it": {scene.Noon.Add(time.Minute), &signs.Heartbeats{ReadAt: scene.Noon, Nodes: 10}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scene.Scene{}).State(t)
			r := verifying(s)
			r.Intent.BootID, r.Deadline = s.Node.Status.NodeInfo.BootID, c.deadline
			s.Journal.Record, s.Heartbeats = r, c.beats
			d := node.Decide(s, scene.Noon)
			require.Equal(t, c.waits, d.Verb == lifecycle.VerbWait, "%s: %s", d.Verb, d.Message)
		})
	}
}
