package engine

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// underRepair is a record of a reboot of the node whose call was made a moment ago.
func underRepair(phase remediations.Phase) *remediations.Record {
	now := time.Now().UTC().Truncate(time.Second)
	return &remediations.Record{
		V: 1, ID: "r00001", Policy: "node-not-ready", Cause: remediations.Cause{Alert: fingerprintOf("node-0")}, Phase: phase,
		Step: remediations.StepRef{Name: "reboot", Attempt: 1}, Done: remediations.Attempts{{Name: "reboot", Number: 1}}, Began: now, Since: now, Deadline: now.Add(time.Minute),
		Intent: &remediations.Intent{ID: "r00001-0-1", At: now, BootID: "boot1", UID: "uid"},
	}
}

// putRecord writes the record on the Node.
func putRecord(n *corev1.Node, key string, r *remediations.Record) {
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[key] = r.Encode()
	if remediations.OccupyingKey(key) {
		n.Labels[remediations.PhaseLabel] = string(r.Phase)
	}
}

// silent is an API server that answers no read of a Node.
type silent struct {
	*still
	err error
}

func (s silent) Node(context.Context, string) (*corev1.Node, error) { return nil, s.err }

// TestAStoppingEngineWritesWhatBecameOfItsCallAndNothingElse: the next leader does all the rest.
func TestAStoppingEngineWritesWhatBecameOfItsCallAndNothingElse(t *testing.T) {
	const pod = "p00-0"
	node := func(phase remediations.Phase, change func(r *remediations.Record)) func(n *corev1.Node) {
		return func(n *corev1.Node) {
			r := underRepair(phase)
			change(r)
			putRecord(n, remediations.NodeRepairKey, r)
		}
	}
	sidecar := func(phase remediations.Phase) func(n *corev1.Node) {
		return func(n *corev1.Node) {
			r := plantedSidecar(pod, time.Now().UTC().Truncate(time.Second), time.Now().Add(time.Minute))
			r.Phase, r.Intent.Outcome = phase, ""
			putRecord(n, podKey(pod), r)
		}
	}
	leader := func(phase remediations.Phase, back bool) func(n *corev1.Node) {
		return func(n *corev1.Node) {
			r := planted("plantd", phase)
			if !back {
				r.Back = nil
			}
			putRecord(n, remediations.LocationKey, r)
		}
	}
	cancelled := func(id string, first func(n *corev1.Node)) func(n *corev1.Node) {
		return func(n *corev1.Node) {
			n.Annotations = map[string]string{}
			first(n)
			n.Annotations[remediations.CancelKey] = id
		}
	}
	beside := func(key string, first func(n *corev1.Node)) func(n *corev1.Node) {
		return func(n *corev1.Node) {
			first(n)
			n.Annotations[key] = "{}"
		}
	}
	nothing := func(*remediations.Record) {}
	for name, c := range map[string]struct {
		node    func(n *corev1.Node)
		called  called
		unread  error
		settles string // the key of the record that then has the outcome
	}{
		"a node's call":                            {node(remediations.PhaseActing, nothing), called{}, nil, remediations.NodeRepairKey},
		"a node's, and the API server is silent":   {node(remediations.PhaseActing, nothing), called{}, errLost, ""},
		"a node's, beside what nobody can read":    {beside(podKey(pod), node(remediations.PhaseActing, nothing)), called{}, nil, remediations.NodeRepairKey},
		"a node's without a record":                {cancelled("r00001", func(*corev1.Node) {}), called{}, nil, ""},
		"a node's that was given back":             {cancelled("r00001", node(remediations.PhasePending, nothing)), called{}, nil, ""},
		"a drain that goes on":                     {cancelled("r00001", node(remediations.PhaseActing, func(r *remediations.Record) { r.Step.Name = "drain" })), called{}, nil, ""},
		"a sidecar's call":                         {sidecar(remediations.PhaseActing), called{of: target{kind: remediations.KindSidecar, name: "sei/" + pod}}, nil, podKey(pod)},
		"a sidecar's, beside what nobody can read": {beside(remediations.NodeRepairKey, sidecar(remediations.PhaseActing)), called{of: target{kind: remediations.KindSidecar, name: "sei/" + pod}}, nil, podKey(pod)},
		"a sidecar's without a record":             {func(*corev1.Node) {}, called{of: target{kind: remediations.KindSidecar, name: "sei/" + pod}}, nil, ""},
		"a sidecar's that has its outcome":         {cancelled("plants", sidecar(remediations.PhaseVerifying)), called{of: target{kind: remediations.KindSidecar, name: "sei/" + pod}}, nil, ""},
		"a leader's call":                          {leader(remediations.PhaseActing, false), called{of: target{kind: remediations.KindLocation, name: "l0"}}, nil, remediations.LocationKey},
		"a leader's, beside what nobody can read":  {beside(remediations.NodeRepairKey, leader(remediations.PhaseActing, false)), called{of: target{kind: remediations.KindLocation, name: "l0"}}, nil, remediations.LocationKey},
		"a leader's, whose alert is left":          {leaderAlert, called{of: target{kind: remediations.KindLocation, name: "l0"}}, nil, ""},
		"a leader's that has its outcome":          {cancelled("plantd", leader(remediations.PhaseVerifying, false)), called{of: target{kind: remediations.KindLocation, name: "l0"}}, nil, ""},
		"a leader's whose moves are being undone":  {cancelled("plantd", leader(remediations.PhaseActing, true)), called{of: target{kind: remediations.KindLocation, name: "l0"}}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			conf := withSidecars(withLeaders(modelConfig()))
			w := newStill(conf, 1, 0)
			c.node(w.nodes[0])
			e := New(Options{Config: conf, Fleet: w, Writer: w, Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{}, Log: logr.Discard(), NewTask: func() string { return "task" }})
			if c.unread != nil {
				e.Fleet = silent{w, c.unread}
			}
			before := w.nodes[0]
			was := maps.Clone(before.Annotations)
			c.called.of.node = "node-0"
			intent := map[remediations.Kind]string{
				remediations.KindNode: "r00001-0-1", remediations.KindSidecar: "plants-0-1", remediations.KindLocation: "plantd-0-2",
			}[c.called.of.kind]
			c.called.call = lifecycle.Call{IntentID: intent}
			_ = e.recordOutcome(t.Context(), c.called)
			require.Same(t, before, w.nodes[0], "nothing became of the call yet")
			c.called.call.Outcome = remediations.CallAccepted
			_ = e.recordOutcome(t.Context(), c.called)
			if c.settles == "" {
				require.Same(t, before, w.nodes[0], "nothing was written")
				return
			}
			settled, err := modelRegistry.DecodeRecord(w.nodes[0].Annotations[c.settles])
			require.NoError(t, err)
			require.Equal(t, remediations.PhaseVerifying, settled.Phase)
			require.Equal(t, remediations.CallAccepted, settled.Intent.Outcome)
			was[c.settles] = w.nodes[0].Annotations[c.settles]
			require.Equal(t, was, w.nodes[0].Annotations)
		})
	}
}

// leaderAlert writes the alert of a location's leader on the Node.
func leaderAlert(n *corev1.Node) {
	c := leaderConfig()
	now := time.Now().UTC().Truncate(time.Second)
	a := c.NewAlert(leaderPolicyOf(c), labelsOfPlace("l0"), remediations.StatusFiring, now, now)
	n.Annotations = map[string]string{a.Key(): a.Encode()}
}

// contended is a journal whose first writes meet a conflict.
type contended struct {
	*still
	conflicts int
}

func (j *contended) Write(ctx context.Context, n *corev1.Node, c NodeChange) (*corev1.Node, error) {
	if j.conflicts > 0 {
		j.conflicts--
		return nil, ErrConflict
	}
	return j.still.Write(ctx, n, c)
}

// TestAnEngineThatStopsWaitsForItsCallsAlone: it waits a moment for calls under way, and not at all
// without calls.
func TestAnEngineThatStopsWaitsForItsCallsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		underway  int
		answers   bool
		conflicts int // of the write of its outcome
		waits     time.Duration
	}{
		"no call": {}, "a call that is answered": {underway: 1, answers: true}, "a call that hangs": {underway: 1, waits: graceful},
		"a call that is answered while its Node changes": {underway: 1, answers: true, conflicts: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newStill(modelConfig(), 1, 0)
				putRecord(w.nodes[0], remediations.NodeRepairKey, underRepair(remediations.PhaseActing))
				e := New(Options{Config: modelConfig(), Fleet: w, Writer: &contended{w, c.conflicts}, Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{}, Log: logr.Discard()})
				e.underway = c.underway
				if c.answers {
					e.calls <- called{of: target{node: "node-0"}, step: "reboot", call: lifecycle.Call{IntentID: "r00001-0-1", Outcome: remediations.CallAccepted}}
				}
				began := time.Now()
				e.finish(t.Context())
				require.Equal(t, c.waits, time.Since(began))
				require.Equal(t, c.answers, modelRegistry.ReadJournal(w.nodes[0]).Record.Phase == remediations.PhaseVerifying)
			})
		})
	}
}

// TestAnOverdueRepairOnAnUnwritableNodeIsStuck: its deadline has long passed, the Node cannot be
// written, and nothing is under way.
func TestAnOverdueRepairOnAnUnwritableNodeIsStuck(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	type repair struct {
		m    *memory
		j    remediations.Journal
		slot ledger.Slot
	}
	for name, c := range map[string]struct {
		change func(r *repair)
		stuck  bool
	}{
		"long over":                  {func(*repair) {}, true},
		"over for as long as it may": {func(r *repair) { r.j.Record.Deadline = now.Add(-remediations.OverdueFor) }, false},
		"a leader's slot":            {func(r *repair) { r.slot.Kind = remediations.KindLocation }, false},
		"nothing is remembered":      {func(r *repair) { r.m = nil }, false},
		"no record":                  {func(r *repair) { r.j.Record = nil }, false},
		"another repair":             {func(r *repair) { r.j.Record.ID = "r00002" }, false},
		"it waits":                   {func(r *repair) { r.j.Record.Phase = remediations.PhasePending }, false},
		"the Node can be written":    {func(r *repair) { r.m.writes = outage{} }, false},
		"a drain is under way":       {func(r *repair) { r.m.work = &working{} }, false},
		"its call is under way":      {func(r *repair) { r.m.call = &lifecycle.Call{} }, false},
		"its call is answered":       {func(r *repair) { r.m.call = &lifecycle.Call{Outcome: remediations.CallAccepted} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &repair{m: &memory{writes: outage{since: now.Add(-time.Hour)}}, j: remediations.Journal{Record: underRepair(remediations.PhaseVerifying)}, slot: ledger.Slot{Node: "n0", Repair: "r00001"}}
			r.j.Record.Deadline = now.Add(-remediations.OverdueFor - time.Second)
			c.change(r)
			require.Equal(t, c.stuck, r.m.stuck(now, r.j, r.slot))
		})
	}
}

// TestANodeOccupiesASlotOfItsKind: the record of that kind decides, or the label if the record is
// unreadable.
func TestANodeOccupiesASlotOfItsKind(t *testing.T) {
	unreadable := func(phase string) func(n *corev1.Node) {
		return func(n *corev1.Node) {
			n.Annotations = map[string]string{remediations.NodeRepairKey: "{}"}
			n.Labels[remediations.PhaseLabel] = phase
		}
	}
	for name, c := range map[string]struct {
		change func(n *corev1.Node)
		kind   remediations.Kind
		want   bool
	}{
		"under repair": {func(n *corev1.Node) {
			putRecord(n, remediations.NodeRepairKey, underRepair(remediations.PhaseVerifying))
		}, "", true},
		"under repair, by another one": {func(n *corev1.Node) {
			r := underRepair(remediations.PhaseVerifying)
			r.ID = "other1"
			putRecord(n, remediations.NodeRepairKey, r)
		}, "", false},
		"waits, whatever its label": {func(n *corev1.Node) {
			putRecord(n, remediations.NodeRepairKey, underRepair(remediations.PhasePending))
			n.Labels[remediations.PhaseLabel] = "Acting"
		}, "", false},
		"no record": {func(*corev1.Node) {}, "", false},
		"under repair, the leader's slot": {func(n *corev1.Node) {
			putRecord(n, remediations.NodeRepairKey, underRepair(remediations.PhaseVerifying))
		}, remediations.KindLocation, false},
		"its leadership moves": {func(n *corev1.Node) {
			putRecord(n, remediations.LocationKey, planted("plantd", remediations.PhaseActing))
		}, remediations.KindLocation, true},
		"its leadership moves, its own one": {func(n *corev1.Node) {
			putRecord(n, remediations.LocationKey, planted("plantd", remediations.PhaseActing))
		}, "", false},
		"unreadable, under repair by its label": {unreadable("Acting"), "", true},
		"unreadable, waits by its label":        {unreadable("Pending"), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newStill(modelConfig(), 1, 0).nodes[0]
			c.change(n)
			repair := map[remediations.Kind]string{remediations.KindNode: "r00001", remediations.KindLocation: "plantd"}[c.kind]
			require.Equal(t, c.want, occupied(n, modelRegistry.ReadJournal(n), ledger.Slot{Kind: c.kind, Node: n.Name, UID: string(n.UID), Repair: repair}))
		})
	}
}

// TestSweepFreesWhatNothingOccupies: sweep reads a Node only in doubt, and frees no slot whose Node
// it cannot read.
func TestSweepFreesWhatNothingOccupies(t *testing.T) {
	for name, c := range map[string]struct {
		age      time.Duration
		kind     remediations.Kind
		repaired bool
		unread   bool
		frees    bool
		fails    bool
	}{
		"a former leader may yet write its intent": {age: slotYoung},
		"nothing came of it":                       {age: slotYoung + 1, frees: true},
		"a leader's":                               {age: time.Hour, kind: remediations.KindLocation, frees: true},
		"nobody can look":                          {age: time.Hour, unread: true, fails: true},
		"under repair, and nobody need look":       {age: time.Hour, unread: true, repaired: true},
	} {
		t.Run(name, func(t *testing.T) {
			e, ctx := settled(t, 2, 0)
			w := e.Fleet.(*still) //nolint:forcetypeassert // settled makes it
			if c.repaired {
				w.nodes[0] = w.nodes[0].DeepCopy()
				putRecord(w.nodes[0], remediations.NodeRepairKey, underRepair(remediations.PhaseVerifying))
				e.roster.Read(w.nodes)
			}
			if c.unread {
				e.Fleet = silent{w, errLost}
			}
			now := e.Clock.Now()
			slot := ledger.Slot{Kind: c.kind, Node: "node-0", UID: "uid", Repair: "r00001", Attempt: "r00001-0-1", Since: now.Add(-c.age)}
			e.ledger.Slots = []ledger.Slot{slot}
			p := &pass{Engine: e, ctx: ctx, now: now, fleet: e.roster.Fleet(e.ledger, false, now)}
			p.sweep()
			require.Equal(t, c.frees, len(e.ledger.Slots) == 0)
			require.Equal(t, c.fails, p.failed)
		})
	}
}
