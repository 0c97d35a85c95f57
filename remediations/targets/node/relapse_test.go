package node_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestAnAlertCameBackAtTheFirstTimeAfterTheCure: a time before the cure belongs to the alert that
// was cured, and is not the time at which the alert returned.
func TestAnAlertCameBackAtTheFirstTimeAfterTheCure(t *testing.T) {
	const window = time.Hour
	before := func(d time.Duration) time.Time { return scene.Noon.Add(-d) }
	cured := before(2 * time.Hour)
	for name, c := range map[string]struct {
		received, starts time.Time
		relapse          bool
	}{
		"it came back within the window":                                {received: before(90 * time.Minute), starts: before(90 * time.Minute), relapse: true},
		"it came back within the window, and began before the cure":     {received: before(90 * time.Minute), starts: before(3 * time.Hour), relapse: true},
		"it came back after the window":                                 {received: before(time.Minute), starts: before(time.Minute)},
		"it came back after the window, and began before the cure":      {received: before(time.Minute), starts: before(3 * time.Hour)},
		"it came back after the window, and was received before":        {received: before(3 * time.Hour), starts: before(time.Minute)},
		"it came back after the window, and began as the cure was seen": {received: before(time.Minute), starts: cured},
		"nothing says that it came back":                                {received: before(3 * time.Hour), starts: before(3 * time.Hour)},
		"it came back at the end of the window":                         {received: cured.Add(window), starts: cured.Add(window)},
		"it came back just before the end of the window":                {received: cured.Add(window - 1), starts: cured.Add(window - 1), relapse: true},
		"it came back within the window, and started again later":       {received: before(90 * time.Minute), starts: before(time.Minute), relapse: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scene.Scene{}).State(t)
			p := &Policy{Name: "p", RelapseWindow: window}
			s.Ledger.Cures = map[string][]ledger.Cure{ledger.Machine(s.Node): {{Repair: "r1", Policy: "p", At: cured}}}
			relapse := node.Relapse(s, p, &Alert{ReceivedAt: c.received, StartsAt: c.starts}, scene.Noon)
			require.Equal(t, c.relapse, relapse != nil)
		})
	}
}

// TestTheLastCureIsInTheHistoryOrInTheLedger: the alert came back half an hour after the last cure
// of its policy. The newer of the two sources counts, and a failed cure of either is a failed one.
func TestTheLastCureIsInTheHistoryOrInTheLedger(t *testing.T) {
	const window = time.Hour
	before := func(d time.Duration) time.Time { return scene.Noon.Add(-d) }
	reboot := StepRef{Name: "reboot", Attempt: 1}
	ended := func(id, policy string, of Outcome, at time.Time) Entry {
		return Entry{ID: id, Policy: policy, Outcome: of, Ended: at, Steps: Attempts{reboot.Issued()}, Last: &reboot}
	}
	cured := func(id string, at time.Time, relapsed bool) []ledger.Cure {
		return []ledger.Cure{{Repair: id, Policy: "p", At: at, Step: reboot, Relapsed: relapsed}}
	}
	ofASidecar := ended("r2", "p", OutcomeRecovered, before(20*time.Minute))
	ofASidecar.Target = strings.TrimPrefix(SidecarKey(scene.ThePod), RepairPrefix)
	for name, c := range map[string]struct {
		history  []Entry
		ledger   []ledger.Cure
		cure     string
		relapsed bool
	}{
		"neither has one": {},
		"in the history":  {history: []Entry{ended("r1", "p", OutcomeRecovered, before(time.Hour))}, cure: "r1"},
		"a repair by another policy is not the policy's last": {
			history: []Entry{ended("r2", "another", OutcomeRecovered, before(20*time.Minute)), ended("r1", "p", OutcomeRecovered, before(time.Hour))}, cure: "r1",
		},
		"a repair of the node's sidecar is not one of the node": {
			history: []Entry{ofASidecar, ended("r1", "p", OutcomeRecovered, before(time.Hour))}, cure: "r1",
		},
		"in the ledger": {ledger: cured("r1", before(time.Hour), false), cure: "r1"},
		"in both": {
			history: []Entry{ended("r1", "p", OutcomeRecovered, before(time.Hour))}, ledger: cured("r1", before(time.Hour), false), cure: "r1",
		},
		"in both, and the history has that it failed": {
			history: []Entry{ended("r1", "p", OutcomeRelapsed, before(time.Hour))}, ledger: cured("r1", before(time.Hour), false), cure: "r1", relapsed: true,
		},
		"in both, and the ledger has that it failed": {
			history: []Entry{ended("r1", "p", OutcomeRecovered, before(time.Hour))}, ledger: cured("r1", before(time.Hour), true), cure: "r1", relapsed: true,
		},
		"the history has a later one": {
			history: []Entry{ended("r2", "p", OutcomeRecovered, before(time.Hour))}, ledger: cured("r1", before(2*time.Hour), false), cure: "r2",
		},
		"the ledger has a later one": {
			history: []Entry{ended("r1", "p", OutcomeRecovered, before(2*time.Hour))}, ledger: cured("r2", before(time.Hour), false), cure: "r2",
		},
		"it failed, so it counts for limits.repairsWindow": {
			history: []Entry{ended("r1", "p", OutcomeRelapsed, before(20*time.Hour))}, cure: "r1", relapsed: true,
		},
		"it lasted for longer than the window": {history: []Entry{ended("r1", "p", OutcomeRecovered, before(20*time.Hour))}},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scene.Scene{}).State(t)
			s.Journal.History, s.Ledger.Cures = c.history, map[string][]ledger.Cure{ledger.Machine(s.Node): c.ledger}
			back := before(30 * time.Minute)
			relapse := node.Relapse(s, &Policy{Name: "p", RelapseWindow: window}, &Alert{ReceivedAt: back, StartsAt: back}, scene.Noon)
			if c.cure == "" {
				require.Nil(t, relapse)
				return
			}
			require.NotNil(t, relapse)
			require.Equal(t, c.cure, relapse.Repair)
			require.Equal(t, c.relapsed, relapse.Relapsed)
		})
	}
}

// TestWithoutALedgerNoCureHasFailed: Drydock does not know then for how long it could not observe
// alerts.
func TestWithoutALedgerNoCureHasFailed(t *testing.T) {
	s := scene.Golden{Input: "testdata/decide/relapse.input.yaml"}.State(t)
	p, a := s.Config.Policies[0], &s.Journal.Alerts[0]
	require.NotNil(t, node.Relapse(s, p, a, scene.Noon), "the control")
	s.Ledger = nil
	require.Nil(t, node.Relapse(s, p, a, scene.Noon))
}

// TestTheCureThatARepairContinuesHasFailed: the plan ends at a drain that took too long. Only the
// cure that the repair continues has failed, and it fails once.
func TestTheCureThatARepairContinuesHasFailed(t *testing.T) {
	last := StepRef{Name: "reboot", Attempt: 1}
	cure := func(id string, of Outcome) []Entry {
		return []Entry{{ID: id, Policy: "node-not-ready", Outcome: of, Ended: scene.Noon.Add(-2 * time.Hour), Last: &last}}
	}
	for name, c := range map[string]struct {
		history  []Entry
		noLedger bool
		failed   string
	}{
		"it has failed": {history: cure("cured0", OutcomeRecovered), failed: "cured0"},
		"it has failed, and the ledger cannot be read": {history: cure("cured0", OutcomeRecovered), noLedger: true, failed: "cured0"},
		"it had failed before":                         {history: cure("cured0", OutcomeRelapsed)},
		"another repair cured the node since":          {history: cure("cured1", OutcomeRecovered)},
		"the history and the ledger have lost it":      {},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.Golden{Input: "testdata/decide/drain-timed-out-on-a-ready-node.input.yaml"}.State(t)
			s.Journal.Record.After, s.Journal.History = &After{ID: "cured0", Step: last}, c.history
			if c.noLedger {
				s.Ledger = nil
			}
			d := node.Decide(s, scene.Noon)
			require.Equal(t, OutcomeExhausted, d.Ended.Outcome)
			if c.failed == "" {
				require.Nil(t, d.Relapsed)
				return
			}
			require.NotNil(t, d.Relapsed)
			require.Equal(t, c.failed, d.Relapsed.Repair)
		})
	}
}

// TestARelapseAfterTheWholePlanEndsIt: earlier repairs have tried every step, so a person must
// check the node. Before Drydock records that, it reads the same facts as before a step.
func TestARelapseAfterTheWholePlanEndsIt(t *testing.T) {
	const pod = "pod kube-system/kube-proxy"
	for name, c := range map[string]struct {
		change func(*lifecycle.State)
		verb   lifecycle.Verb
		ask    lifecycle.Ask
	}{
		"nothing changes":               {func(*lifecycle.State) {}, lifecycle.VerbEnd, lifecycle.Ask{}},
		"the mode is observe":           {func(s *lifecycle.State) { s.Config.Policies[0].Mode = ModeObserve }, lifecycle.VerbEnd, lifecycle.Ask{}},
		"a person paused the node":      {func(s *lifecycle.State) { s.Node.Annotations[PauseKey] = "true" }, lifecycle.VerbHold, lifecycle.Ask{}},
		"the witness has not been read": {func(s *lifecycle.State) { s.Config.Policies[0].Witness = scene.WitnessOf(pod) }, lifecycle.VerbLook, lifecycle.Ask{Witness: true}},
		"the ledger could not be read": {func(s *lifecycle.State) {
			d := node.Decide(s, scene.Noon)
			require.Equal(t, "old111", d.Record.After.ID)
			r := waiting()
			r.After = d.Record.After
			on(s, r)
			s.Ledger, s.LedgerErr = nil, errors.New("no answer")
		}, lifecycle.VerbLook, lifecycle.Ask{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.Golden{Input: "testdata/decide/relapse-after-the-whole-plan.input.yaml"}.State(t)
			c.change(s)
			d := node.Decide(s, scene.Noon)
			require.Equal(t, c.verb, d.Verb, d.Message)
			require.Equal(t, c.ask, d.Ask)
		})
	}
}
