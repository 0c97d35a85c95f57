package remediations_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/routing"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// moving returns a node whose location's leadership is about to move to n2, by the intent r1-0-1.
func moving(back bool) *corev1.Node {
	n, r := scene.Bare("n1"), scene.LocationRecord(PhaseActing)
	if back {
		since := scene.Noon
		r.Back = &since
	}
	n.Annotations[LocationKey] = r.Encode()
	return n
}

// TestLastLookBeforeTheMove is TestLastLookBeforeTheCall for the move of a leadership. A person's
// mark after the intent stops the move, if it is on the leader, on the successor, or on a node that
// would lose the leader key. A repair of one of these nodes stops it, too.
func TestLastLookBeforeTheMove(t *testing.T) {
	annotate := func(key, value string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Annotations[key] = value }
	}
	ofAnybody := map[string]struct {
		change func(*corev1.Node)
		may    bool
	}{
		"nothing was said":           {func(*corev1.Node) {}, true},
		"an exclusion that is off":   {func(n *corev1.Node) { n.Labels[ExcludeLabel] = "false" }, true},
		"a node repair that waits":   {annotate(NodeRepairKey, pendingRepair()), true},
		"excluded":                   {func(n *corev1.Node) { n.Labels[ExcludeLabel] = "" }, false},
		"paused":                     {annotate(PauseKey, "true"), false},
		"a pause that nobody reads":  {annotate(PauseKey, "perhaps"), false},
		"the glass is broken":        {annotate(BreakGlassKey, "why"), false},
		"something is cancelled":     {annotate(CancelKey, "r1"), false},
		"the node is being deleted":  {func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: scene.Noon} }, false},
		"the node is being taken":    {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted"}} }, false},
		"the node came under repair": {func(n *corev1.Node) { scene.InFlight(n, "reboot") }, false},
	}
	for _, back := range []bool{false, true} {
		last := func(leader *corev1.Node, others ...*corev1.Node) error {
			if back {
				return location.MayStillPutBack(&Config{}, leader, others, "r1-back")
			}
			return location.MayStillMove(&Config{}, leader, others, "r1-0-1")
		}
		for name, c := range ofAnybody {
			for i, whose := range []string{"the leader's", "the successor's", "another's"} {
				all := []*corev1.Node{moving(back), scene.Bare("n2"), scene.Bare("n3")}
				c.change(all[i])
				err := last(all[0], all[1:]...)
				require.Equal(t, c.may, err == nil, "%s: %s: %v", whose, name, err)
			}
		}
		rewrite := func(change func(*Record)) *corev1.Node {
			n := moving(back)
			r := ReadJournal(n).Records[LocationKey]
			change(r)
			n.Annotations[LocationKey] = r.Encode()
			return n
		}
		now := scene.Noon
		require.Error(t, last(scene.Bare("n1")), "no record")
		require.Error(t, last(rewrite(func(r *Record) { r.ID, r.Intent.ID = "r2", "r2-0-1" })), "another repair's record")
		require.Error(t, last(rewrite(func(r *Record) { r.Phase, r.Back = PhaseVerifying, nil })), "it is over")
		require.Error(t, last(rewrite(func(r *Record) { r.Phase, r.Deadline = PhasePending, now })), "it was interrupted")
		require.Error(t, last(rewrite(func(r *Record) {
			if r.Back == nil {
				r.Back = &now
			} else {
				r.Back = nil
			}
		})), "the record is of the other of the two")
	}
	cordoned := scene.Bare("n2")
	cordoned.Spec.Unschedulable = true
	require.ErrorContains(t, location.MayStillMove(&Config{}, moving(false), []*corev1.Node{cordoned}, "r1-0-1"), "cordoned")
	require.NoError(t, location.MayStillPutBack(&Config{}, moving(true), []*corev1.Node{cordoned}, "r1-back"), "what it loses it may lose cordoned")
	cordoned.Name = "n3"
	require.NoError(t, location.MayStillMove(&Config{}, moving(false), []*corev1.Node{cordoned}, "r1-0-1"), "nor does one that loses the key matter")
}

// TestNoNodeIsCalledForWhileItsLeadershipMoves: the last check before a call for a node stops the
// call while the node's location is under repair.
func TestNoNodeIsCalledForWhileItsLeadershipMoves(t *testing.T) {
	for phase, may := range map[Phase]bool{PhasePending: true, PhaseActing: false, PhaseVerifying: false, PhaseExhausted: true} {
		n := scene.Acting()
		n.Annotations[LocationKey] = scene.LocationRecord(phase).Encode()
		require.Equal(t, may, node.MayStillAct(&Config{}, n, "r1-0-1", nil, nil) == nil, phase)
	}
}

// TestLeaderAndItsNodesExcludeEachOther: a location's repair holds repairs of its old leader and of
// each successor, and they hold the location's repair. The record on the Node or the slot in the
// ledger alone is enough.
func TestLeaderAndItsNodesExcludeEachOther(t *testing.T) {
	// The leader is first: neither node is repaired meanwhile, but a third node is.
	r := scene.LocationRecord(PhaseVerifying)
	r.Moves = append(r.Moves, scene.TheMove("n2", "n3"))
	r.Intent.Successor = "n3"
	slot := ledger.Slot{Kind: KindLocation, Node: "n2", Successor: "n3", Location: "eu", Repair: "r1", Attempt: "r1-0-1"}
	for name, c := range map[string]struct {
		record *Record
		slots  []ledger.Slot
		on     map[string]bool
	}{
		"by its record": {r, nil, map[string]bool{"n1": true, "n2": true, "n3": true, "n4": false}},
		"by its slot":   {nil, []ledger.Slot{slot}, map[string]bool{"n1": false, "n2": true, "n3": true, "n4": false}},
		"while it waits": {func() *Record {
			w := r.Clone()
			w.Phase = PhasePending
			return w
		}(), nil, map[string]bool{"n1": false, "n2": false, "n3": false}},
	} {
		for on, held := range c.on {
			leader := scene.Bare("n1")
			if c.record != nil {
				leader.Annotations[LocationKey], leader.Labels[PhaseLabel] = c.record.Encode(), string(c.record.Phase)
			}
			sc := &scene.Scene{Ledger: scene.Ledger{Slots: c.slots}}
			s := sc.State(t)
			s.Node.Name = on
			nodes := []*corev1.Node{s.Node}
			if on == "n1" {
				s.Node.Annotations[LocationKey], s.Node.Labels[PhaseLabel] = leader.Annotations[LocationKey], leader.Labels[PhaseLabel]
				if c.record == nil {
					delete(s.Node.Annotations, LocationKey)
				}
			} else {
				nodes = append(nodes, leader)
			}
			for _, other := range sc.OtherNodes() {
				if other.Name != on {
					nodes = append(nodes, other)
				}
			}
			s.Node.Spec.ProviderID, s.Node.Status.NodeInfo.BootID = "civo://"+on, "boot-"+on // unique to this Node
			s.Journal = ReadJournal(s.Node)
			s.Fleet = fleet.New(s.Config, nodes, &ledger.Ledger{Slots: c.slots}, scene.Quiet, scene.Noon)
			d := node.Decide(s, scene.Noon)
			require.Equal(t, held, d.Reason == ReasonNodeUnderRepair, "%s: %s: %s %s", name, on, d.Verb, d.Message)
			require.Equal(t, held, d.Verb != lifecycle.VerbIssue, "%s: %s: %s %s", name, on, d.Verb, d.Message)
		}
	}
	// A node is first: see the goldens held-NodeUnderRepair… and
	// issue-candidate-under-repair-is-passed-over. Here only the slot shows it.
	s := scene.ReadLocation(t, `ledger: {slots: [{node: n2, repair: r9, attempt: r9-0-1, since: "<now-1s>"}]}`).LocationState(t)
	require.Equal(t, "n3", location.Decide(s, scene.Noon).Record.Intent.Successor)
	s = scene.ReadLocation(t, `ledger: {slots: [{node: n1, repair: r9, attempt: r9-0-1, since: "<now-1s>"}]}`).LocationState(t)
	require.Equal(t, ReasonNodeUnderRepair, location.Decide(s, scene.Noon).Reason)
}

// TestLabelSaysWhatAPersonMustKnowFirst: if a Node has a repair of its own and one of its location,
// the phase label shows the more important phase.
func TestLabelSaysWhatAPersonMustKnowFirst(t *testing.T) {
	for _, c := range []struct{ node, leader, want Phase }{
		{"", "", ""}, {PhasePending, "", PhasePending}, {"", PhaseVerifying, PhaseVerifying}, {PhasePending, PhaseActing, PhaseActing}, {PhaseExhausted, PhaseVerifying, PhaseVerifying},
		{PhaseVerifying, PhaseExhausted, PhaseVerifying}, {PhasePending, PhaseExhausted, PhaseExhausted}, {PhaseExhausted, PhasePending, PhaseExhausted}, {PhaseActing, PhaseVerifying, PhaseActing},
	} {
		n := scene.Bare("n1")
		if c.node != "" {
			r := Record{V: 1, ID: "r9", Policy: "p", Cause: Cause{Alert: "a"}, Phase: c.node, Step: StepRef{Name: "reboot", Attempt: 1}, Since: scene.Noon, Deadline: scene.Noon, Intent: &Intent{ID: "r9-0-1", At: scene.Noon}}
			n.Annotations[NodeRepairKey] = r.Encode()
		}
		if c.leader != "" {
			n.Annotations[LocationKey] = scene.LocationRecord(c.leader).Encode()
		}
		require.Equal(t, c.want, Registry(nil).LabelFor(n.Annotations), "%+v", c)
	}
	require.Empty(t, Registry(nil).LabelFor(map[string]string{NodeRepairKey: "{}"}))
}

// TestLedgerRemembersMovesAcrossRestarts: the ledger has the last move of each location's repair
// for as long as the move counts. Moves do not count against the limits of nodes. If a person
// deletes the ledger, Drydock creates it again with the moves.
func TestLedgerRemembersMovesAcrossRestarts(t *testing.T) {
	c := scene.LimitsAlone()
	c.Limits.RepairsWindow, c.Limits.Locations = time.Minute, LocationLimits{Concurrent: 1, PerLocation: 15 * time.Minute}
	n, r := scene.Bare("n1"), scene.LocationRecord(PhaseActing)
	l := &ledger.Ledger{}
	l.Slots = []ledger.Slot{{Node: "n1", Repair: "node's"}}
	l.Reserve(c, n, r, scene.Noon)
	require.Len(t, l.Slots, 2, "the node's own slot stays")
	require.Equal(t, ledger.Slot{Kind: KindLocation, Node: "n1", Successor: "n2", Location: "eu", Policy: r.Policy, UID: "uid-n1", ProviderID: "civo://n1", Repair: "r1", Attempt: "r1-0-1", Since: scene.Noon}, l.Slots[1])
	require.Empty(t, l.Repairs)
	require.Equal(t, map[string][]ledger.Begun{"eu": {{Repair: "r1", At: scene.Noon}}}, l.Moves)

	later := scene.Noon.Add(5 * time.Minute)
	back := later
	r.Back = &back
	l.Reserve(c, n, r, later)
	require.Len(t, l.Slots, 2)
	require.Equal(t, "r1-back", l.Slots[1].Attempt)
	require.Equal(t, []ledger.Begun{{Repair: "r1", At: later}}, l.Moves["eu"], "putting back is a move")
	again, err := ledger.Decode(l.Encode())
	require.NoError(t, err)
	require.Equal(t, l.Moves, again.Moves)

	require.True(t, l.Release("node's"))
	require.Len(t, l.Slots, 1, "the end of the node's repair frees its own slot")
	require.False(t, l.Release("node's"))
	require.True(t, l.Release("r1"))
	require.False(t, l.Release("r1"))
	require.Empty(t, l.Slots)
	require.NotEmpty(t, l.Moves)
	require.Equal(t, ledger.Begun{Repair: "r1", At: later}, l.LastMove("eu", "r2"))
	require.Zero(t, l.LastMove("eu", "r1"), "its own move holds no repair")
	require.Zero(t, l.LastMove("us", ""), "nor does one of another location")

	other := scene.LocationRecord(PhaseActing)
	other.ID, other.Location = "r2", "us"
	l.Reserve(c, scene.Bare("n5"), other, later.Add(2*PendingFor-time.Minute))
	require.Contains(t, l.Moves, "eu", "a repair that waits may still put its moves back")
	l.Reserve(c, scene.Bare("n5"), other, later.Add(2*PendingFor))
	require.NotContains(t, l.Moves, "eu", "what binds nobody any more is forgotten")

	ended := Entry{ID: "r0", Target: "leader", Location: "us", Policy: "p", Steps: Attempts{{Name: "promote-leader", Number: 1}}, Began: scene.Noon.Add(-4 * time.Minute), Ended: scene.Noon.Add(-time.Minute), Outcome: OutcomeRecovered}
	idle := Entry{ID: "r3", Target: "leader", Location: "ap", Policy: "p", Began: scene.Noon, Ended: scene.Noon, Outcome: OutcomeSuperseded}
	n.Annotations[LocationKey], n.Annotations[HistoryKey] = scene.LocationRecord(PhaseVerifying).Encode(), EncodeJSON([]Entry{ended, idle})
	rebuilt := ledger.Rebuild(c, []*corev1.Node{n}, scene.Noon)
	require.Equal(t, map[string][]ledger.Begun{"eu": {{Repair: "r1", At: scene.Noon.Add(-30 * time.Second)}}, "us": {{Repair: "r0", At: ended.Ended}}}, rebuilt.Moves)
	require.Len(t, rebuilt.Slots, 1)
	require.Equal(t, "n2", rebuilt.Slots[0].Successor)
	require.Empty(t, rebuilt.Status.Exhausted, "a repair that is under way has not failed")

	r.Phase = PhaseActing // it undoes its moves
	n.Annotations[LocationKey] = r.Encode()
	require.Equal(t, []ledger.Begun{{Repair: "r1", At: later}}, ledger.Rebuild(c, []*corev1.Node{n}, later).Moves["eu"])
	early := r.Intent.At.Add(-time.Minute)
	r.Back = &early
	n.Annotations[LocationKey] = r.Encode()
	require.Equal(t, []ledger.Begun{{Repair: "r1", At: r.Intent.At}}, ledger.Rebuild(c, []*corev1.Node{n}, later).Moves["eu"], "the last of the two counts")
}

// TestLeadersAlertNeverMovesItsNode: an alert about a location's leader causes no repair of the
// node, does not count as a fault of the node, and is not in the node's record.
func TestLeadersAlertNeverMovesItsNode(t *testing.T) {
	s := scene.ReadLocation(t, `{alerts: [{}, {fingerprint: "00000000000000aa", active: true}]}`).LocationState(t)
	d := node.Decide(s.State, scene.Noon)
	require.Equal(t, lifecycle.VerbRest, d.Verb)
	require.Empty(t, d.Prune)
	s = scene.ReadLocation(t, `{alerts: [{status: resolved}], word: {replicas: [{alert: absent}, {alert: absent}]}}`).LocationState(t)
	require.Empty(t, node.Decide(s.State, scene.Noon).Prune, "nor is it the node's to drop")
	require.NotEmpty(t, location.Decide(s, scene.Noon).Prune)

	// The leader's decision does not remove the node's own alert.
	s = scene.ReadLocation(t, `{alerts: [{status: resolved}, {fingerprint: "00000000000000aa", status: resolved}], word: {replicas: [{alert: absent}, {alert: absent}]}}`).LocationState(t)
	own := s.Journal.Alerts[slices.IndexFunc(s.Journal.Alerts, func(a Alert) bool { return a.Fingerprint == "00000000000000aa" })]
	own.Policy = "node-not-ready"
	s.Node.Annotations[own.Key()] = own.Encode()
	s.Journal = ReadJournal(s.Node)
	s.Subject, _ = scene.LocationOf(s.Config, s.Journal)
	require.Equal(t, []string{AlertPrefix + scene.FP}, location.Decide(s, scene.Noon).Prune)
}

// TestARepairMakesFourMovesAtMost: a repair makes at most MaxMoves moves, even if its plan has more
// attempts, because the record has no room for a fifth move.
func TestARepairMakesFourMovesAtMost(t *testing.T) {
	s := scene.ReadLocation(t, `{policy: {plan: ["promote-leader 9"]}, sight: {leader: n6, candidates: [n7]}}`).LocationState(t)
	r := scene.LocationRecord(PhaseVerifying)
	r.Began, r.Deadline, r.Step.Attempt, r.Moves, r.Done = scene.Noon.Add(-10*time.Minute), scene.Noon, 4, nil, nil
	for i, to := range []string{"n3", "n4", "n5", "n6"} {
		r.Moves = append(r.Moves, scene.TheMove([]string{"n1", "n3", "n4", "n5"}[i], to))
		r.Done = append(r.Done, Attempt{Name: "promote-leader", Number: i + 1})
	}
	r.Intent.ID, r.Intent.Successor, r.Intent.Outcome = "r1-0-4", "n6", CallAccepted
	s.Node.Annotations[LocationKey] = r.Encode()
	s.Journal = ReadJournal(s.Node)
	require.NoError(t, s.Journal.Malformed)
	s.Subject, _ = scene.LocationOf(s.Config, s.Journal)
	s.Ledger.Moved(r.Location, r.ID, r.Intent.At)
	d := location.Decide(s, scene.Noon)
	require.Equal(t, lifecycle.VerbIssue, d.Verb, d.Message)
	require.Len(t, d.PutBack, 4)
	require.Len(t, d.Record.Moves, 4)
}

// TestAMoveOfLeadershipCannotBeRequested: Drydock moves a leadership only because of an alert.
func TestAMoveOfLeadershipCannotBeRequested(t *testing.T) {
	s := scene.ReadLocation(t, `{}`).LocationState(t)
	for _, request := range []string{"promote-leader", "remediation/promote-leader", "policy/mesh-leader-degraded", "mesh-leader-degraded"} {
		s.Node.Annotations[RequestKey] = request
		d := node.Decide(s.State, scene.Noon)
		require.NotEqual(t, lifecycle.VerbIssue, d.Verb, request)
		require.Nil(t, d.Record, request)
		require.Equal(t, []string{RequestKey}, d.Consume, "%s is answered, not left", request)
		require.Len(t, d.Notices, 1, request)
	}
	require.ErrorContains(t, second(s.Config.ParseRequest("policy/mesh-leader-degraded")), "only moved for an alert")
}

// TestResetForgetsAnExhaustedLeader: a reset of the node also removes the exhausted repair of its
// location, and clears the policy's count of failures. It never removes a repair in flight.
func TestResetForgetsAnExhaustedLeader(t *testing.T) {
	reset := func(leader, own Phase) lifecycle.Decision {
		s := scene.ReadLocation(t, `{node: {annotations: {drydock.dev/reset: "true"}}}`).LocationState(t)
		s.Node.Annotations[LocationKey] = scene.LocationRecord(leader).Encode()
		if own != "" {
			r := Record{V: 1, ID: "r9", Policy: "p", Cause: Cause{Alert: "a"}, Phase: own, Step: StepRef{Name: "reboot", Attempt: 1}, Since: scene.Noon, Deadline: scene.Noon.Add(time.Hour), Intent: &Intent{ID: "r9-0-1", At: scene.Noon}}
			s.Node.Annotations[NodeRepairKey] = r.Encode()
		}
		s.Journal = ReadJournal(s.Node)
		require.NoError(t, s.Journal.Malformed)
		return node.Decide(s.State, scene.Noon)
	}
	d := reset(PhaseExhausted, "")
	require.Equal(t, lifecycle.VerbRest, d.Verb)
	require.Equal(t, []string{LocationKey}, d.Prune)
	require.Equal(t, []string{"mesh-leader-degraded"}, d.Allow)
	require.Equal(t, []string{ResetKey}, d.Consume)
	require.Empty(t, d.Notices)

	d = reset(PhaseExhausted, PhaseExhausted)
	require.Equal(t, lifecycle.VerbReset, d.Verb)
	require.Equal(t, []string{LocationKey}, d.Prune)
	require.Equal(t, []string{"p", "mesh-leader-degraded"}, d.Allow)

	d = reset(PhaseVerifying, PhaseExhausted)
	require.Equal(t, lifecycle.VerbReset, d.Verb)
	require.Empty(t, d.Prune)

	d = reset(PhaseExhausted, PhasePending)
	require.Equal(t, []string{LocationKey}, d.Prune, "a repair of the node that has done nothing is no obstacle")
	d = reset(PhaseExhausted, PhaseVerifying)
	require.Empty(t, d.Prune, "a repair of the node that is under way is not reset")

	d = reset(PhaseVerifying, "")
	require.Empty(t, d.Prune)
	require.Len(t, d.Notices, 1, "there is nothing to forget")
}

// TestWordOfALeadersRepairIsItsOwn: a person's cancel or approval may be for the location's repair.
// Then the decision about the location handles it. Otherwise the decision about the node answers
// it.
func TestWordOfALeadersRepairIsItsOwn(t *testing.T) {
	decide := func(phase Phase, key, value string) lifecycle.Decision {
		s := scene.ReadLocation(t, `{}`).LocationState(t)
		r := scene.LocationRecord(phase)
		if phase == PhasePending {
			r.Moves, r.Intent, r.Done, r.Undo, r.Deadline = nil, nil, nil, nil, scene.Noon.Add(time.Hour)
		}
		s.Node.Annotations[LocationKey], s.Node.Annotations[key] = r.Encode(), value
		s.Journal = ReadJournal(s.Node)
		require.NoError(t, s.Journal.Malformed)
		return node.Decide(s.State, scene.Noon)
	}
	for phase, consumed := range map[Phase]bool{PhaseActing: false, PhaseVerifying: false, PhasePending: false, PhaseExhausted: true} {
		require.Equal(t, consumed, len(decide(phase, CancelKey, "r1").Consume) > 0, phase)
		require.Equal(t, phase != PhasePending, len(decide(phase, ApproveKey, "r1").Consume) > 0, phase)
	}
	require.Contains(t, decide(PhaseExhausted, CancelKey, "r1").Notices[0].Message, "run out of steps already")
	require.NotEmpty(t, decide(PhaseVerifying, CancelKey, "stop it!").Pause, "somebody wanted something to stop")
	require.Empty(t, decide(PhaseVerifying, CancelKey, "r2r2r2").Pause)
}

// TestLeadersRecordIsStrict: a record of a location that this version would not have written is
// unreadable, and holds the node.
func TestLeadersRecordIsStrict(t *testing.T) {
	back := scene.Noon
	for name, change := range map[string]func(*Record){
		"no location":                   func(r *Record) { r.Location = "" },
		"a location of control bytes":   func(r *Record) { r.Location, r.Moves[0].Location = "e\x00u", "e\x00u" },
		"a node's step":                 func(r *Record) { r.Step.Name = "reboot" },
		"no move":                       func(r *Record) { r.Moves = nil },
		"a move without an intent":      func(r *Record) { r.Phase, r.Intent = PhasePending, nil },
		"an intent without its id":      func(r *Record) { r.Phase, r.Intent.ID = PhaseExhausted, "" },
		"another successor":             func(r *Record) { r.Intent.Successor = "n3" },
		"a move that changes nothing":   func(r *Record) { r.Moves[0].Before = nil },
		"a move on to itself":           func(r *Record) { r.Moves[0].From = "n2" },
		"a move off nobody":             func(r *Record) { r.Moves[0].From = "" },
		"a move elsewhere":              func(r *Record) { r.Moves[0].Location = "us" },
		"a move too long":               func(r *Record) { long := strings.Repeat("x", MaxMoveBytes); r.Moves[0].Before["n1"] = &long },
		"too many moves":                func(r *Record) { r.Moves = []Move{r.Moves[0], r.Moves[0], r.Moves[0], r.Moves[0], r.Moves[0]} },
		"put back while it is verified": func(r *Record) { r.Back = &back },
		"a pod's":                       func(r *Record) { r.Pod = &Pod{Namespace: "sei", Name: "a-0"} },
		"a later version's":             func(r *Record) { r.V = 2 },
	} {
		r := scene.LocationRecord(PhaseVerifying)
		change(r)
		n := scene.Bare("n1")
		n.Annotations[LocationKey] = r.Encode()
		j := ReadJournal(n)
		require.Error(t, j.Malformed, name)
		require.Nil(t, j.Records[LocationKey], name)
	}
	n := scene.Bare("n1")
	n.Annotations[NodeRepairKey] = scene.LocationRecord(PhaseVerifying).Encode()
	require.ErrorContains(t, ReadJournal(n).Malformed, "name different targets")
	n = scene.Acting()
	n.Annotations[LocationKey] = n.Annotations[NodeRepairKey]
	require.ErrorContains(t, ReadJournal(n).Malformed, "name different targets")
	r := ReadJournal(scene.Acting()).Record
	r.Moves = scene.LocationRecord(PhaseActing).Moves
	require.ErrorContains(t, r.Validate(nil), "moves of leadership and no location")
	n.Annotations[LocationKey] = scene.LocationRecord(PhaseVerifying).Encode()
	j := ReadJournal(n)
	require.NoError(t, j.Malformed)
	require.Equal(t, "r1", j.Records[LocationKey].ID)
	require.Len(t, j.OtherRepairs, 1)
	require.True(t, Journal{Records: map[string]*Record{LocationKey: j.Records[LocationKey]}}.Knows("r1"))
}

// TestLeaderOfOneLocationAtATime: while one location of a Node is under repair, alerts about
// another one wait. An alert without a location is ignored.
func TestLeaderOfOneLocationAtATime(t *testing.T) {
	c := scene.ReadLocation(t, `{}`).LocationState(t).Config
	alert := func(fingerprint, location string, age time.Duration) Alert {
		return Alert{Policy: "mesh-leader-degraded", Fingerprint: fingerprint, StartsAt: scene.Noon.Add(-age), Labels: map[string]string{"location": location}}
	}
	_, ok := scene.LocationOf(c, Journal{})
	require.False(t, ok)
	_, ok = scene.LocationOf(c, Journal{Alerts: []Alert{alert("a", "", 0), alert("b", "e\nu", 0), {Policy: "node-not-ready"}}})
	require.False(t, ok)
	l, ok := scene.LocationOf(c, Journal{Alerts: []Alert{alert("a", "us", time.Hour), alert("b", "eu", time.Minute), alert("c", "us", time.Second)}})
	require.True(t, ok)
	require.Equal(t, "us", l.Name)
	require.Len(t, l.Alerts, 2)
	l, _ = scene.LocationOf(c, Journal{Records: map[string]*Record{LocationKey: scene.LocationRecord(PhaseVerifying)}, Alerts: []Alert{alert("a", "us", time.Hour), alert("b", "eu", time.Minute)}})
	require.Equal(t, "eu", l.Name, "that of the repair")
	require.Equal(t, "b", l.Alerts[0].Fingerprint)
}

// TestRouteOfALeadersAlert: the route has the location's name from the alert's label, without
// looking up a Node. The alert on the Node has this label.
func TestRouteOfALeadersAlert(t *testing.T) {
	c := scene.ReadLocation(t, `{}`).LocationState(t).Config
	p := c.Policies[0]
	never := func(string) *corev1.Node { t.Fatal("no node is named"); return nil }
	labels := map[string]string{"alertname": "MeshLeaderDegraded", "remediation": "node-not-ready", "location": "eu", "node": "n7"}
	route, why := routing.Of(c, labels, never)
	require.Equal(t, routing.Route{Policy: p, Name: "eu"}, route)
	require.Equal(t, MisrouteNone, why)
	require.Equal(t, map[string]string{"location": "eu"}, c.NewAlert(p, labels, StatusFiring, scene.Noon, scene.Noon).Labels)
	require.True(t, c.Wants(labels))
	require.False(t, c.Names(labels, "n7"), "a leader's alert is no node's")
	for _, location := range []string{"", strings.Repeat("x", 254), "e\x1bu", "e\xffu"} {
		labels["location"] = location
		_, why = routing.Of(c, labels, never)
		require.Equal(t, MisrouteNoTarget, why, "%q", location)
	}
	labels["location"], c.Provided = "eu", map[string]bool{"reboot": true}
	_, why = routing.Of(c, labels, never)
	require.Equal(t, MisrouteNoPolicy, why, "without a provider of the mesh nobody may look at it")
}
