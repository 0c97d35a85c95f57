package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestLastLookBeforeTheCall tests invariants 4 and 9 right before a call: Drydock reads the Node
// once more, and any mark that a person has set since the intent stops the call.
func TestLastLookBeforeTheCall(t *testing.T) {
	annotate := func(key, value string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Annotations[key] = value }
	}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		reason Reason
	}{
		"nothing was said":           {func(*corev1.Node) {}, ""},
		"an exclusion that is off":   {func(n *corev1.Node) { n.Labels[ExcludeLabel] = "false" }, ""},
		"excluded":                   {func(n *corev1.Node) { n.Labels[ExcludeLabel] = "" }, ReasonExcluded},
		"paused":                     {annotate(PauseKey, "true"), ReasonPaused},
		"paused for a while":         {annotate(PauseKey, scene.Noon.Add(time.Hour).Format(time.RFC3339)), ReasonPaused},
		"a pause that nobody reads":  {annotate(PauseKey, "perhaps"), ReasonPaused},
		"the glass is broken":        {annotate(BreakGlassKey, "why"), ReasonPaused},
		"cancelled":                  {annotate(CancelKey, "r1"), ReasonCallWithheld},
		"it is being deleted":        {func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: scene.Noon} }, ReasonNodeLeaving},
		"an autoscaler takes it":     {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted"}} }, ReasonNodeLeaving},
		"no record":                  {func(n *corev1.Node) { delete(n.Annotations, NodeRepairKey) }, ReasonCallWithheld},
		"a record that is no record": {annotate(NodeRepairKey, "{}"), ReasonCallWithheld},
		"its leadership is moved":    {func(n *corev1.Node) { n.Annotations[LocationKey] = scene.LocationRecord(PhaseActing).Encode() }, ReasonNodeUnderRepair},
		"another attempt's record": {func(n *corev1.Node) {
			r := ReadJournal(n).Record
			r.Intent.ID = "r1-0-2"
			n.Annotations[NodeRepairKey] = r.Encode()
		}, ReasonCallWithheld},
		"a control-plane node is rebooted": {controlPlaneNode, ""},
		"a control-plane node is never replaced": {func(n *corev1.Node) {
			controlPlaneNode(n)
			r := ReadJournal(n).Record
			r.Step.Name = "replace"
			n.Annotations[NodeRepairKey] = r.Encode()
		}, ReasonProviderAbsent},
		"drained, and cordoned still": {func(n *corev1.Node) { drainedBefore(n); n.Spec.Unschedulable = true }, ""},
		"the attempt is over": {func(n *corev1.Node) {
			r := ReadJournal(n).Record
			r.Phase = PhaseVerifying
			n.Annotations[NodeRepairKey] = r.Encode()
		}, ReasonCallWithheld},
		"it was uncordoned after its drain": {drainedBefore, ReasonCallWithheld},
	} {
		t.Run(name, func(t *testing.T) {
			n := scene.Acting()
			c.change(n)
			requireWithheld(t, c.reason, node.MayStillAct(&Config{}, n, "r1-0-1", nil, nil))
		})
	}
}

// requireWithheld requires that the last check stops the call for this reason. If the reason is
// empty, the check must not stop the call.
func requireWithheld(t *testing.T, reason Reason, err error) {
	t.Helper()
	if reason == "" {
		require.NoError(t, err)
		return
	}
	require.Error(t, err)
	require.Equal(t, reason, WithheldFor(fmt.Errorf("the provider says: %w", err), ""), "%v", err)
}

// TestLastLookBeforeAnApproval tests the last check before the approval of a sidecar, with the
// reason for each cause.
func TestLastLookBeforeAnApproval(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		reason Reason
	}{
		"nothing was said":            {func(*corev1.Node) {}, ""},
		"paused":                      {func(n *corev1.Node) { n.Annotations[PauseKey] = "true" }, ReasonPaused},
		"no record":                   {func(n *corev1.Node) { delete(n.Annotations, SidecarKey(scene.ThePod)) }, ReasonCallWithheld},
		"its node is under repair":    {func(n *corev1.Node) { scene.InFlight(n, "reboot") }, ReasonNodeUnderRepair},
		"its node's leadership moves": {func(n *corev1.Node) { scene.Leads(n, "eu", "n2", PhaseActing, false) }, ReasonNodeUnderRepair},
		"another sidecar is verified": {func(n *corev1.Node) {
			r, other := scene.SidecarRecord(PhaseVerifying), Pod{Namespace: "sei", Name: "b-0", UID: "pod2"}
			r.ID, r.Pod = "r2", &other
			n.Annotations[SidecarKey(other)] = r.Encode()
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := scene.Bare("n1")
			pod := scene.ThePod
			pod.UID = "pod1"
			r := Record{V: 1, ID: "r1", Policy: "p", Cause: Cause{Alert: "a"}, Pod: &pod, Phase: PhaseActing, Step: StepRef{Name: "mark-ready", Attempt: 1},
				Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon, Intent: &Intent{ID: "r1-0-1", At: scene.Noon}}
			n.Annotations[SidecarKey(scene.ThePod)] = r.Encode()
			c.change(n)
			requireWithheld(t, c.reason, lifecycle.MayStillRepair(&Config{}, n, SidecarKey(scene.ThePod), "r1-0-1"))
		})
	}
}

// TestARepairIsNotInItsOwnWay: the last check finds the repair itself among the repairs in flight.
func TestARepairIsNotInItsOwnWay(t *testing.T) {
	n := scene.Bare("n1")
	n.Annotations[LocationKey] = scene.LocationRecord(PhaseActing).Encode()
	require.Len(t, ReadJournal(n).OtherRepairs, 1)
	requireWithheld(t, "", lifecycle.MayStillRepair(&Config{}, n, LocationKey, "r1-0-1"))
}

func TestLastLookBeforeAMove(t *testing.T) {
	for name, c := range map[string]struct {
		change func(leader, successor *corev1.Node)
		reason Reason
	}{
		"nothing was said":            {func(_, _ *corev1.Node) {}, ""},
		"the leader is paused":        {func(l, _ *corev1.Node) { l.Annotations[PauseKey] = "true" }, ReasonPaused},
		"the successor is excluded":   {func(_, s *corev1.Node) { s.Labels[ExcludeLabel] = "" }, ReasonExcluded},
		"the successor is cordoned":   {func(_, s *corev1.Node) { s.Spec.Unschedulable = true }, ReasonLeaderHeld},
		"the successor is repaired":   {func(_, s *corev1.Node) { scene.InFlight(s, "reboot") }, ReasonNodeUnderRepair},
		"the record is another one's": {func(l, _ *corev1.Node) { scene.Leads(l, "eu", "n2", PhaseActing, false) }, ReasonCallWithheld},
	} {
		t.Run(name, func(t *testing.T) {
			leader, successor := scene.Bare("n1"), scene.Bare("n2")
			leader.Annotations[LocationKey] = scene.LocationRecord(PhaseActing).Encode()
			c.change(leader, successor)
			requireWithheld(t, c.reason, location.MayStillMove(&Config{}, leader, []*corev1.Node{successor}, "r1-0-1"))
		})
	}
}

// TestLastLookAsksTheWitness: a sign that was Ill when the intent was written must still be Ill
// right before the call, by a new reading.
func TestLastLookAsksTheWitness(t *testing.T) {
	notReady, lease := signs.Sign{Kind: signs.NotReady}, signs.Sign{Kind: signs.StaleLease}
	says := func(a signs.Answer) map[signs.Sign]signs.Testimony {
		return map[signs.Sign]signs.Testimony{lease: {Answer: a, Saw: "it is " + string(a), At: scene.Noon}}
	}
	for name, c := range map[string]struct {
		ready corev1.ConditionStatus
		signs []signs.Sign
		read  map[signs.Sign]signs.Testimony
		may   bool
	}{
		"a request asks nobody":            {corev1.ConditionTrue, nil, nil, true},
		"still not Ready":                  {corev1.ConditionFalse, []signs.Sign{notReady}, nil, true},
		"Ready by now":                     {corev1.ConditionTrue, []signs.Sign{notReady}, nil, false},
		"the other sign is ill":            {corev1.ConditionTrue, []signs.Sign{notReady, lease}, says(signs.Ill), true},
		"no sign is":                       {corev1.ConditionTrue, []signs.Sign{notReady, lease}, says(signs.Well), false},
		"the other sign is not known":      {corev1.ConditionTrue, []signs.Sign{notReady, lease}, says(signs.Unknown), false},
		"the other sign could not be read": {corev1.ConditionTrue, []signs.Sign{notReady, lease}, nil, false},
		"one is ill, the other not read":   {corev1.ConditionUnknown, []signs.Sign{notReady, lease}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := scene.Acting()
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: c.ready}}
			requireWithheld(t, map[bool]Reason{false: ReasonNotWitnessed}[c.may], node.MayStillAct(&Config{}, n, "r1-0-1", c.signs, c.read))
		})
	}
}

func TestLastLookSaysWhatCouldNotBeRead(t *testing.T) {
	signs := []signs.Sign{{Kind: signs.NotReady}, {Kind: signs.StaleLease}}
	const unread = "signs that the Node does not show could not be read"
	require.ErrorContains(t, lifecycle.StillWitnessed(scene.Bare("n1"), signs, nil), unread)
	err := lifecycle.StillWitnessed(scene.Bare("n1"), signs[:1], nil)
	require.Error(t, err)
	require.NotContains(t, err.Error(), unread)
}

// TestOwnMarksOfAStrangersRepairDoNotHoldIt: a repair may have a step that only the installation's
// own registry knows. The guard and the last check must read its record with that registry, so that
// its own marks do not hold it. The control: the same marks without a record hold both.
func TestOwnMarksOfAStrangersRepairDoNotHoldIt(t *testing.T) {
	at := scene.Noon.Add(-time.Minute)
	c := &Config{Registry: Registry{"polish": {Name: "polish", Verb: "polish", Disruptive: true, Once: true, Wait: time.Minute, Attempts: 1}}}
	for name, change := range map[string]struct {
		undo Undo
		mark func(*corev1.Node)
	}{
		"a taint": {Undo{Kind: UndoTaint, Key: OutOfServiceTaint, At: at}, func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: OutOfServiceTaint, TimeAdded: &metav1.Time{Time: at}}}
		}},
		"an announcement": {Undo{Kind: UndoAnnotation, Key: "karpenter.sh/do-not-disrupt", At: at}, func(n *corev1.Node) {
			n.Annotations["karpenter.sh/do-not-disrupt"] = announce.Value
		}},
		"a shutdown that it caused": {Undo{}, func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
				Type: "GracefulNodeShutdownInProgress", Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(scene.Noon.Add(time.Second)),
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			n := scene.Acting()
			r := ReadJournal(n).Record
			r.Step.Name = "polish"
			if change.undo.Kind != "" {
				r.Undo = append(r.Undo, change.undo)
			}
			change.mark(n)
			guard := func() Reason {
				reason, _ := (&lifecycle.Candidate{State: &lifecycle.State{Config: c, Node: n, Journal: c.Registry.ReadJournal(n)}, Now: scene.Noon, Policy: &Policy{}}).HeldBy([]Reason{ReasonNodeLeaving})
				return reason
			}
			delete(n.Annotations, NodeRepairKey)
			require.Equal(t, ReasonNodeLeaving, guard())
			requireWithheld(t, ReasonNodeLeaving, lifecycle.LetsAct(nil, n, c.Registry.ReadJournal(n), scene.Noon))

			n.Annotations[NodeRepairKey] = r.Encode()
			require.Empty(t, guard())
			requireWithheld(t, "", node.MayStillAct(c, n, r.Intent.ID, nil, nil))
		})
	}
}

func drainedBefore(n *corev1.Node) {
	r := ReadJournal(n).Record
	r.Done = Attempts{{Name: "drain", Number: 1}, {Name: "reboot", Number: 1}}
	n.Annotations[NodeRepairKey] = r.Encode()
}

func controlPlaneNode(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }
