package remediations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// acting is a node whose intent r1-0-1 is on record.
func acting() *corev1.Node {
	n := bare("n1")
	r := Record{V: 1, ID: "r1", Policy: "p", Cause: Cause{Alert: "a"}, Phase: Acting, Step: StepRef{Name: "reboot", Attempt: 1},
		Began: noon, Since: noon, Deadline: noon, Intent: &Intent{ID: "r1-0-1", At: noon}}
	n.Annotations[NodeRepairKey], n.Labels[PhaseLabel] = r.Encode(), string(Acting)
	return n
}

// TestLastLookBeforeTheCall is invariants 4 and 9 at the last moment: the node is read once more, and whatever was said
// since the intent was written stops the call.
func TestLastLookBeforeTheCall(t *testing.T) {
	annotate := func(key, value string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Annotations[key] = value }
	}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		may    bool
	}{
		"nothing was said":           {func(*corev1.Node) {}, true},
		"an exclusion that is off":   {func(n *corev1.Node) { n.Labels[ExcludeLabel] = "false" }, true},
		"excluded":                   {func(n *corev1.Node) { n.Labels[ExcludeLabel] = "" }, false},
		"paused":                     {annotate(PauseKey, "true"), false},
		"paused for a while":         {annotate(PauseKey, noon.Add(time.Hour).Format(time.RFC3339)), false},
		"a pause that nobody reads":  {annotate(PauseKey, "perhaps"), false},
		"the glass is broken":        {annotate(BreakGlassKey, "why"), false},
		"it is being deleted":        {func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: noon} }, false},
		"no record":                  {func(n *corev1.Node) { delete(n.Annotations, NodeRepairKey) }, false},
		"a record that is no record": {annotate(NodeRepairKey, "{}"), false},
		"another attempt's record": {func(n *corev1.Node) {
			r := ReadJournal(n).Record
			r.Intent.ID = "r1-0-2"
			n.Annotations[NodeRepairKey] = r.Encode()
		}, false},
		"a control-plane node is rebooted": {controlPlaneNode, true},
		"a control-plane node is never replaced": {func(n *corev1.Node) {
			controlPlaneNode(n)
			r := ReadJournal(n).Record
			r.Step.Name = "replace"
			n.Annotations[NodeRepairKey] = r.Encode()
		}, false},
		"the attempt is over": {func(n *corev1.Node) {
			r := ReadJournal(n).Record
			r.Phase = Verifying
			n.Annotations[NodeRepairKey] = r.Encode()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := acting()
			c.change(n)
			err := MayStillAct(n, "r1-0-1", nil, nil)
			require.Equal(t, c.may, err == nil, "%v", err)
		})
	}
}

// TestLastLookAsksTheWitness: what said ill at the intent must still say so when the call leaves, by what is read then.
func TestLastLookAsksTheWitness(t *testing.T) {
	notReady, lease := Sign{Kind: SignNotReady}, Sign{Kind: SignStaleLease}
	says := func(a Answer) map[Sign]Testimony {
		return map[Sign]Testimony{lease: {Answer: a, Saw: "it is " + string(a), At: noon}}
	}
	for name, c := range map[string]struct {
		ready corev1.ConditionStatus
		signs []Sign
		read  map[Sign]Testimony
		may   bool
	}{
		"a request asks nobody":            {corev1.ConditionTrue, nil, nil, true},
		"still not Ready":                  {corev1.ConditionFalse, []Sign{notReady}, nil, true},
		"Ready by now":                     {corev1.ConditionTrue, []Sign{notReady}, nil, false},
		"the other sign is ill":            {corev1.ConditionTrue, []Sign{notReady, lease}, says(Ill), true},
		"no sign is":                       {corev1.ConditionTrue, []Sign{notReady, lease}, says(Well), false},
		"the other sign is not known":      {corev1.ConditionTrue, []Sign{notReady, lease}, says(Unknown), false},
		"the other sign could not be read": {corev1.ConditionTrue, []Sign{notReady, lease}, nil, false},
		"one is ill, the other not read":   {corev1.ConditionUnknown, []Sign{notReady, lease}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := acting()
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: c.ready}}
			err := MayStillAct(n, "r1-0-1", c.signs, c.read)
			require.Equal(t, c.may, err == nil, "%v", err)
		})
	}
}

func controlPlaneNode(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }
