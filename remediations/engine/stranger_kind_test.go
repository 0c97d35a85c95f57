package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// kindVolume is a kind of target that Drydock does not know. What the configuration and the core are told of it is one line; what the
// engine is told is its port, below.
const kindVolume remediations.Kind = "volume"

// remount is its remediation.
var remount = remediations.Remediation{Name: "remount", Verb: "remount", Once: true, Target: kindVolume, Wait: 2 * time.Minute, Attempts: 2, Invasive: 1}

// volume is one volume, of n0 at first, and the port of the stranger's that looks at it and repairs it.
type volume struct {
	w *world
	// node has it.
	node string
	// stuck: it is ill, and needs so many calls to be well. fires: its alert does. hidden: nobody can look at it.
	stuck         int
	fires, hidden bool
	since         time.Time
	// onRecord are the attempts for which the Node had the intent when the call was made, calls are all of them.
	calls, onRecord []string
}

const volumeName = "data/vol-7"

func (v *volume) labels() map[string]string {
	return map[string]string{"alertname": "VolumeStuck", "remediation": "volume-stuck", "volume": volumeName}
}

func (v *volume) sent(at time.Time) []sent {
	if !v.fires {
		return nil
	}
	return []sent{{labels: v.labels(), starts: v.since, at: at}}
}

func (v *volume) ail(calls int) { v.stuck, v.fires, v.since = calls, true, time.Now() }

func (v *volume) Carrier(_ context.Context, name string) (node string, err error) {
	if name != volumeName {
		return "", nil
	}
	v.w.do(func() { node = v.node })
	return node, nil
}

func (v *volume) Observe(_ context.Context, node, _ string) (o lifecycle.Observation) {
	v.w.do(func() {
		o = lifecycle.Observation{UID: "uid-7", Well: v.stuck == 0, Saw: "its mount point does not answer"}
		if v.hidden {
			o = lifecycle.Observation{Unknown: "nobody answers for the volume"}
		}
		if node != v.node {
			o.Elsewhere = "the volume is attached to " + v.node
		}
	})
	return o
}

func (v *volume) Act(_ context.Context, t Target, mayStill func() error) (remediations.CallOutcome, error) {
	if err := mayStill(); err != nil {
		return remediations.CallRefused, err
	}
	v.w.do(func() {
		v.calls = append(v.calls, t.Attempt)
		if r := v.record(); r != nil && r.Phase == remediations.PhaseActing && r.Intent.ID == t.Attempt && r.Target == t.Name {
			v.onRecord = append(v.onRecord, t.Attempt)
		}
		if v.stuck--; v.stuck == 0 {
			v.fires = false
		}
	})
	return remediations.CallAccepted, nil
}

// record is what its Node has of it; nil: nothing.
func (v *volume) record() *remediations.Record {
	for _, r := range modelRegistry.ReadJournal(v.w.nodes[v.node]).Of(kindVolume) {
		return r
	}
	return nil
}

// checkVolumeEnd is invariant 7 for the stranger's kind.
func (w *world) checkVolumeEnd(cur *corev1.Node, e remediations.Entry) {
	was := modelRegistry.ReadJournal(cur).Records[remediations.RepairPrefix+e.Target]
	switch {
	case was == nil || was.ID != e.ID:
		w.fail("7: the repair %s of a volume ended, and %s carries no such record", e.ID, cur.Name)
	case e.Outcome == remediations.OutcomeRecovered && (w.volume.stuck > 0 || len(w.volume.calls) == 0):
		w.fail("7: Recovered of a volume that is stuck, or that nobody repaired")
	}
}

// volumeConfig has a policy about volumes, as a configuration names it.
func volumeConfig(t *testing.T) *remediations.Config {
	further := config.Further{Remediations: remediations.Registry{remount.Name: remount}, Kinds: []*remediations.TargetKind{lifecycle.PlainKind(kindVolume)}}
	read, err := configured(t, `match: ['remediation="volume-stuck"'], mode: enforce, cooldown: 0s, target: {volume: volume}, plan: [{step: remount}]`, further)
	require.NoError(t, err)
	p := read.Policy("strange")
	require.Equal(t, kindVolume, p.Kind)
	require.Equal(t, []string{"volume"}, p.Labels)
	require.Equal(t, []remediations.Step{{Name: remount.Name, Wait: remount.Wait, Attempts: remount.Attempts}}, p.Plan, "as it says itself")
	c := modelConfig()
	c.Policies, c.Kinds, c.Provided[remount.Name] = append(c.Policies, p), read.Kinds, true
	return c
}

// TestAConfigurationNamesAStrangersKind: a policy about it has its steps, and no other kind's; a Drydock that does not know it says so.
func TestAConfigurationNamesAStrangersKind(t *testing.T) {
	known := config.Further{Remediations: remediations.Registry{remount.Name: remount}, Kinds: []*remediations.TargetKind{lifecycle.PlainKind(kindVolume)}}
	for what, c := range map[string]struct {
		policy, fault string
		further       config.Further
	}{
		"its own step":                 {`target: {volume: volume}, plan: [{step: remount}]`, "", known},
		"control: it is not known":     {`target: {volume: volume}, plan: [{step: remount}]`, "volume", config.Further{}},
		"control: nor its remediation": {`target: {volume: volume}, plan: [{step: remount}]`, "no such remediation", config.Further{Kinds: known.Kinds}},
		"a node's step":                {`target: {volume: volume}, plan: [{step: reboot}]`, "reboot is about a node, and the policy is about a volume", known},
		"its step on a node":           {`witness: none, plan: [{step: remount}]`, "write target: {volume: volume}", known},
		"two kinds at once":            {`target: {volume: volume, location: location}, plan: [{step: remount}]`, "a policy is about one of", known},
		"a witness":                    {`target: {volume: volume}, witness: none, plan: [{step: remount}]`, "only a policy about nodes has one", known},
		"a node's selector":            {`target: {volume: volume}, nodeSelector: {matchLabels: {a: b}}, plan: [{step: remount}]`, "selects no nodes", known},
	} {
		_, err := configured(t, `match: ['remediation="volume-stuck"'], `+c.policy, c.further)
		if c.fault == "" {
			require.NoError(t, err, what)
		} else {
			require.ErrorContains(t, err, c.fault, what)
		}
	}
}

// TestAStrangersKindOfTargetIsOneLineAndItsPort: its alert names it, and is written on the Node that has it. It is decided about by
// the one lifecycle, with the guards; its intent is on record before the one call for it, its cure is proven, and its history kept.
// Where what is seen of it says that nothing is wrong, or nothing is seen, or a guard holds it, nothing is done.
func TestAStrangersKindOfTargetIsOneLineAndItsPort(t *testing.T) {
	for name, c := range map[string]struct {
		first   func(*world)
		config  func(*remediations.Config)
		held    remediations.Reason
		then    func(*world)
		calls   int
		outcome remediations.Outcome
	}{
		"it is cured":              {calls: 1, outcome: remediations.OutcomeRecovered},
		"by its second attempt":    {first: func(w *world) { w.volume.stuck = 2 }, calls: 2, outcome: remediations.OutcomeRecovered},
		"not by all of them":       {first: func(w *world) { w.volume.stuck = 3 }, calls: 2, outcome: remediations.OutcomeExhausted},
		"its look says it is well": {first: func(w *world) { w.volume.stuck = 0 }, held: remediations.ReasonNotWitnessed},
		"it moves to a node that is not held": {
			first: func(w *world) { w.hold("n0", edit(remediations.PauseKey, "true")) }, held: remediations.ReasonPaused, calls: 1, outcome: remediations.OutcomeRecovered,
			then: func(w *world) { w.volume.node = "n1" },
		},
		"its alert ends and it is stuck": {first: func(w *world) { w.volume.stuck = 2 }, then: func(w *world) { w.volume.fires = false }, calls: 1},
		"nobody can look at it":          {first: func(w *world) { w.volume.hidden = true }, held: remediations.ReasonNotWitnessed},
		"until somebody can":             {first: func(w *world) { w.volume.hidden = true }, held: remediations.ReasonNotWitnessed, then: func(w *world) { w.volume.hidden = false }, calls: 1, outcome: remediations.OutcomeRecovered},
		"its node is paused":             {first: func(w *world) { w.hold("n0", edit(remediations.PauseKey, "true")) }, held: remediations.ReasonPaused},
		"until it is not":                {first: func(w *world) { w.hold("n0", edit(remediations.PauseKey, "true")) }, held: remediations.ReasonPaused, then: func(w *world) { w.unhold("n0") }, calls: 1, outcome: remediations.OutcomeRecovered},
		"its node is under repair":       {first: func(w *world) { w.edit("n0", edit(remediations.NodeRepairKey, nodeUnderRepair)) }, held: remediations.ReasonNodeUnderRepair},
		"the policy only observes":       {config: func(c *remediations.Config) { c.Policies[1].Mode = remediations.ModeObserve }, held: remediations.ReasonObserving, outcome: remediations.OutcomeObserved},
		"nobody was asked for leave":     {config: func(c *remediations.Config) { c.Policies[1].Approval = true }, held: remediations.ReasonAwaitingApproval},
		"and then somebody was": {config: func(c *remediations.Config) { c.Policies[1].Approval = true }, held: remediations.ReasonAwaitingApproval, calls: 1, outcome: remediations.OutcomeRecovered,
			then: func(w *world) { id := w.volume.record().ID; w.edit("n0", edit(remediations.ApproveKey, id)) }},
	} {
		t.Run(name, func(t *testing.T) {
			conf := volumeConfig(t)
			if c.config != nil {
				c.config(conf)
			}
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.volume = &volume{w: w, node: "n0"}
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.volume.ail(1)
					if c.first != nil {
						c.first(w)
					}
				})
				w.pass(time.Minute)
				if c.held != "" {
					w.do(func() {
						require.Empty(t, w.volume.calls)
						require.NotNil(t, w.volume.record())
						require.Equal(t, c.held, w.volume.record().Hold.Reason, w.volume.record().Hold.Message)
						require.Nil(t, w.volume.record().Intent, "no call was withheld: none was decided")
					})
				}
				if c.then != nil {
					w.do(func() { c.then(w) })
				}
				w.pass(6 * time.Minute)
				w.do(func() {
					require.Len(t, w.volume.calls, c.calls)
					require.Equal(t, w.volume.calls, w.volume.onRecord, "each call's intent was on record")
					history := modelRegistry.ReadJournal(w.nodes[w.volume.node]).History
					if c.outcome == "" {
						require.Empty(t, history)
						return
					}
					require.Len(t, history, 1)
					require.Equal(t, c.outcome, history[0].Outcome, history[0].Why)
					require.Regexp(t, "^volume-", history[0].Target)
					require.Len(t, history[0].Steps, c.calls)
					require.Equal(t, c.outcome == remediations.OutcomeExhausted, w.volume.record() != nil)
				})
			})
		})
	}
}

// TestAnExhaustedTargetOfAnyKindIsReset: a person who has looked lets it go on.
func TestAnExhaustedTargetOfAnyKindIsReset(t *testing.T) {
	inWorld(t, volumeConfig(t), 6, func(t *testing.T, w *world) {
		w.volume = &volume{w: w, node: "n0"}
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.volume.ail(3) })
		require.True(t, w.until(20*time.Minute, func() bool { r := w.volume.record(); return r != nil && r.Phase == remediations.PhaseExhausted }))
		w.do(func() { w.edit("n0", func(n *corev1.Node) { n.Annotations[remediations.ResetKey] = "true" }) })
		require.True(t, w.until(10*time.Minute, func() bool { return len(w.volume.calls) == 3 }), "the next repair")
		require.True(t, w.until(10*time.Minute, func() bool { return w.volume.record() == nil }))
		w.do(func() {
			history := modelRegistry.ReadJournal(w.nodes["n0"]).History
			require.Len(t, history, 2)
			require.Equal(t, remediations.OutcomeRecovered, history[0].Outcome, history[0].Why)
			require.Equal(t, remediations.OutcomeExhausted, history[1].Outcome)
		})
	})
}
