package marks_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/marks"
	"drydock.dev/drydock/remediations/testing/scene"
)

func condition(kind, status string, since time.Time) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(status), LastTransitionTime: metav1.NewTime(since)}
}

// TestWhoHoldsANode: a mark on the Node holds repairs, with a message that names its owner and its
// meaning. A key with a value that does not count is not a mark.
func TestWhoHoldsANode(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		says   string
	}{
		"nothing": {func(*corev1.Node) {}, ""},
		"a taint": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "aws-node-termination-handler/spot-itn", Value: "event-1"}}
		},
			"taint aws-node-termination-handler/spot-itn set by the AWS node termination handler: AWS takes the spot instance away"},
		"another taint":                  {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/not-ready"}} }, ""},
		"a label":                        {func(n *corev1.Node) { n.Labels["cloud.google.com/active-node-maintenance"] = "ONGOING" }, "label cloud.google.com/active-node-maintenance=ONGOING set by GKE: maintenance of the host is under way"},
		"a label with another value":     {func(n *corev1.Node) { n.Labels["cloud.google.com/active-node-maintenance"] = "PENDING" }, ""},
		"an annotation":                  {func(n *corev1.Node) { n.Annotations["karpenter.sh/do-not-disrupt"] = "true" }, "annotation karpenter.sh/do-not-disrupt set by a person: no other program may touch the node"},
		"an annotation that is off":      {func(n *corev1.Node) { n.Annotations["karpenter.sh/do-not-disrupt"] = "false" }, ""},
		"GPUs that are reconfigured":     {func(n *corev1.Node) { n.Labels["nvidia.com/mig.config.state"] = "rebooting" }, "label nvidia.com/mig.config.state=rebooting set by NVIDIA's MIG manager: MIG is being reconfigured"},
		"GPUs that were reconfigured":    {func(n *corev1.Node) { n.Labels["nvidia.com/mig.config.state"] = "success" }, ""},
		"a driver that is upgraded":      {func(n *corev1.Node) { n.Labels["nvidia.com/gpu-driver-upgrade-state"] = "drain-required" }, "label nvidia.com/gpu-driver-upgrade-state=drain-required set by NVIDIA's GPU Operator: the GPU driver is being upgraded"},
		"a driver that waits":            {func(n *corev1.Node) { n.Labels["nvidia.com/gpu-driver-upgrade-state"] = "upgrade-required" }, ""},
		"a driver that was upgraded":     {func(n *corev1.Node) { n.Labels["nvidia.com/gpu-driver-upgrade-state"] = "upgrade-done" }, ""},
		"an update that asks":            {func(n *corev1.Node) { n.Annotations["update.node.deckhouse.io/waiting-for-approval"] = "" }, ""},
		"an update that goes on":         {func(n *corev1.Node) { n.Annotations["update.node.deckhouse.io/approved"] = "" }, "annotation update.node.deckhouse.io/approved set by Deckhouse: the node is being updated"},
		"a machine config that is new":   {func(n *corev1.Node) { n.Annotations["machineconfiguration.openshift.io/state"] = "Working" }, "annotation machineconfiguration.openshift.io/state=Working set by OpenShift's machine config daemon: the node is being updated"},
		"a machine config that is there": {func(n *corev1.Node) { n.Annotations["machineconfiguration.openshift.io/state"] = "Done" }, ""},
		"a condition": {func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, condition("MaintenanceInProgress", "True", scene.Noon))
		}, "condition MaintenanceInProgress=True set by a person or a maintenance controller: the node is under maintenance (since 2026-03-04T12:00:00Z)"},
		"a condition that is over": {func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, condition("MaintenanceInProgress", "False", scene.Noon))
		}, ""},
		"a person's out-of-service": {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: OutOfServiceTaint}} }, "taint node.kubernetes.io/out-of-service set by a person, a cloud controller manager or another repair system: the machine is off, and its volumes are being released"},
	} {
		t.Run(name, func(t *testing.T) {
			n := scene.Bare("n1")
			c.change(n)
			require.Equal(t, c.says, marks.List(nil).Leaving(n, ReadJournal(n), scene.Noon))
			require.Empty(t, marks.List{}.Leaving(n, ReadJournal(n), scene.Noon), "an installation without marks")
		})
	}
}

// TestDrydocksOwnMarksDoNotHoldIt: marks that a repair has set according to its record, or that its
// reboot has caused, do not hold repairs. Each case has a control: the same mark of another owner,
// or without the record.
func TestDrydocksOwnMarksDoNotHoldIt(t *testing.T) {
	at := scene.Noon.Add(-time.Minute)
	tainted := func(n *corev1.Node, at time.Time) {
		n.Spec.Taints = []corev1.Taint{{Key: OutOfServiceTaint, TimeAdded: &metav1.Time{Time: at}}}
	}
	own := Undo{Kind: UndoTaint, Key: OutOfServiceTaint, At: at}
	recorded := func(n *corev1.Node) {
		r := ReadJournal(n).Record
		r.Undo = append(r.Undo, own)
		n.Annotations[NodeRepairKey] = r.Encode()
	}
	announced := func(n *corev1.Node) {
		r := ReadJournal(n).Record
		r.Undo = append(r.Undo, Undo{Kind: UndoAnnotation, Key: "karpenter.sh/do-not-disrupt", At: at})
		n.Annotations[NodeRepairKey] = r.Encode()
	}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		held   bool
	}{
		"on record":                 {func(n *corev1.Node) { recorded(n); tainted(n, at) }, false},
		"on record, set by another": {func(n *corev1.Node) { recorded(n); tainted(n, at.Add(time.Second)) }, true},
		"on record, without a time": {func(n *corev1.Node) { recorded(n); n.Spec.Taints = []corev1.Taint{{Key: OutOfServiceTaint}} }, true},
		"not on record":             {func(n *corev1.Node) { tainted(n, at) }, true},
		"left by a repair that is over": {func(n *corev1.Node) {
			tainted(n, at)
			delete(n.Annotations, NodeRepairKey)
			n.Annotations[HistoryKey] = EncodeJSON([]Entry{{ID: "r0", Policy: "p", Outcome: OutcomeRecovered, Began: at, Ended: at, Left: []Undo{own}}})
		}, false},
		"announced":                             {func(n *corev1.Node) { announced(n); n.Annotations["karpenter.sh/do-not-disrupt"] = "true" }, false},
		"announced, and a person wrote over it": {func(n *corev1.Node) { announced(n); n.Annotations["karpenter.sh/do-not-disrupt"] = "1h" }, true},
		"not announced":                         {func(n *corev1.Node) { n.Annotations["karpenter.sh/do-not-disrupt"] = "true" }, true},
		"a shutdown by the repair's reboot": {func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, condition("GracefulNodeShutdownInProgress", "True", ReadJournal(n).Record.Intent.At.Add(time.Second)))
		}, false},
		"a shutdown before the repair's reboot": {func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, condition("GracefulNodeShutdownInProgress", "True", ReadJournal(n).Record.Intent.At.Add(-time.Second)))
		}, true},
		"a shutdown without a repair": {func(n *corev1.Node) {
			delete(n.Annotations, NodeRepairKey)
			n.Status.Conditions = append(n.Status.Conditions, condition("GracefulNodeShutdownInProgress", "True", scene.Noon))
		}, true},
		"maintenance during the repair": {func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, condition("MaintenanceInProgress", "True", scene.Noon.Add(time.Hour)))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := scene.Acting()
			c.change(n)
			require.Equal(t, c.held, marks.List(nil).Leaving(n, ReadJournal(n), scene.Noon) != "", marks.List(nil).Leaving(n, ReadJournal(n), scene.Noon))
		})
	}
}

// TestAMarkWithADateIsBelievedForAWhile: a mark that is older than its believedFor holds nothing,
// but the message still names it. A mark without believedFor, or with an impossible date, holds
// until its owner removes it.
func TestAMarkWithADateIsBelievedForAWhile(t *testing.T) {
	const candidate, deleted, kured = "DeletionCandidateOfClusterAutoscaler", "ToBeDeletedByClusterAutoscaler", "weave.works/kured-reboot-in-progress"
	unix := func(age time.Duration) string { return strconv.FormatInt(scene.Noon.Add(-age).Unix(), 10) }
	taint := func(key, value string, added time.Duration) func(*corev1.Node) {
		return func(n *corev1.Node) {
			t := corev1.Taint{Key: key, Value: value}
			if added > 0 {
				t.TimeAdded = &metav1.Time{Time: scene.Noon.Add(-added)}
			}
			n.Spec.Taints = []corev1.Taint{t}
		}
	}
	annotation := func(value string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Annotations[kured] = value }
	}
	const kuredSays = "annotation " + kured + " set by kured: kured reboots the node"
	const candidateSays = "taint " + candidate + " set by cluster-autoscaler: the node is not needed and will be removed soon"
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		claim  marks.Claim
	}{
		"a candidate of today": {taint(candidate, unix(10*time.Minute), 0), marks.Claim{
			Why: candidateSays + " (since 2026-03-04T11:50:00Z, believedFor 1h)", Until: scene.Noon.Add(50 * time.Minute),
		}},
		"a candidate of three days ago": {taint(candidate, unix(3*day), 0), marks.Claim{
			Overdue: candidateSays + " (since 2026-03-01T12:00:00Z, longer than believedFor 1h; the mark was not removed)",
		}},
		"a candidate whose value is no time": {taint(candidate, "soon", 0), marks.Claim{Why: candidateSays}},
		"a candidate that says when it was added": {taint(candidate, "soon", 2*time.Hour), marks.Claim{
			Overdue: candidateSays + " (since 2026-03-04T10:00:00Z, longer than believedFor 1h; the mark was not removed)",
		}},
		"a node to be deleted since three days": {taint(deleted, unix(3*day), 0), marks.Claim{
			Why: "taint " + deleted + " set by cluster-autoscaler: the node is being removed (since 2026-03-01T12:00:00Z)",
		}},
		"out of service since three days": {taint(OutOfServiceTaint, "nodeshutdown", 3*day), marks.Claim{
			Why: "taint " + OutOfServiceTaint + " set by a person, a cloud controller manager or another repair system: the machine is off, and its volumes are being released (since 2026-03-01T12:00:00Z)",
		}},
		"a reboot that has just begun, in another zone of time": {annotation("2026-03-04T12:30:00+01:00"), marks.Claim{
			Why: kuredSays + " (since 2026-03-04T11:30:00Z, believedFor 1h)", Until: scene.Noon.Add(30 * time.Minute),
		}},
		"a reboot that never came back": {annotation("2026-03-04T11:00:00Z"), marks.Claim{
			Overdue: kuredSays + " (since 2026-03-04T11:00:00Z, longer than believedFor 1h; the mark was not removed)",
		}},
		"a reboot of a clock that stands at 1970": {annotation("1970-01-01T00:00:00Z"), marks.Claim{Why: kuredSays}},
		"a reboot of a clock that is ahead":       {annotation("2026-03-04T12:01:00Z"), marks.Claim{Why: kuredSays}},
		"a reboot without a time":                 {annotation("yes"), marks.Claim{Why: kuredSays}},
		"two that are forgotten, and one that holds": {func(n *corev1.Node) {
			annotation("2026-03-04T10:00:00Z")(n)
			taint(candidate, unix(3*day), 0)(n)
			n.Annotations["karpenter.sh/do-not-disrupt"] = "true"
		}, marks.Claim{Why: "annotation karpenter.sh/do-not-disrupt set by a person: no other program may touch the node"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := scene.Bare("n1")
			n.CreationTimestamp = metav1.NewTime(scene.Noon.Add(-30 * day))
			c.change(n)
			require.Equal(t, c.claim, marks.List(nil).Claim(n, ReadJournal(n), scene.Noon))
		})
	}
}
