package remediations_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// approving returns a node whose pod's sidecar has the intent r1-0-1 on record.
func approving() *corev1.Node {
	n := scene.Bare("n1")
	n.Annotations[SidecarKey(scene.ThePod)] = scene.SidecarRecord(PhaseActing).Encode()
	return n
}

// TestLastLookBeforeTheApproval is TestLastLookBeforeTheCall for a sidecar. A person's mark on the
// Node after the intent stops the approval of the sidecar. A repair of the node stops it, too.
func TestLastLookBeforeTheApproval(t *testing.T) {
	annotate := func(key, value string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Annotations[key] = value }
	}
	rewrite := func(change func(*Record)) func(*corev1.Node) {
		return func(n *corev1.Node) {
			r := ReadJournal(n).Records[SidecarKey(scene.ThePod)]
			change(r)
			n.Annotations[SidecarKey(scene.ThePod)] = r.Encode()
		}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		may    bool
	}{
		"nothing was said":            {func(*corev1.Node) {}, true},
		"an exclusion that is off":    {func(n *corev1.Node) { n.Labels[ExcludeLabel] = "false" }, true},
		"a node repair that waits":    {func(n *corev1.Node) { n.Annotations[NodeRepairKey] = pendingRepair() }, true},
		"a cordon":                    {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"excluded":                    {func(n *corev1.Node) { n.Labels[ExcludeLabel] = "" }, false},
		"paused":                      {annotate(PauseKey, "true"), false},
		"paused for a while":          {annotate(PauseKey, scene.Noon.Add(time.Hour).Format(time.RFC3339)), false},
		"a pause that nobody reads":   {annotate(PauseKey, "perhaps"), false},
		"the glass is broken":         {annotate(BreakGlassKey, "why"), false},
		"it is cancelled":             {annotate(CancelKey, "r1"), false},
		"the node is being deleted":   {func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: scene.Noon} }, false},
		"the node is being taken":     {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted"}} }, false},
		"the node came under repair":  {func(n *corev1.Node) { scene.InFlight(n, "reboot") }, false},
		"no record":                   {func(n *corev1.Node) { delete(n.Annotations, SidecarKey(scene.ThePod)) }, false},
		"a record that is no record":  {annotate(SidecarKey(scene.ThePod), "{}"), false},
		"another record that is none": {annotate(NodeRepairKey, "{}"), false},
		"another attempt's record":    {rewrite(func(r *Record) { r.Intent.ID = "r1-0-2" }), false},
		"the attempt is over":         {rewrite(func(r *Record) { r.Phase = PhaseVerifying }), false},
	} {
		t.Run(name, func(t *testing.T) {
			n := approving()
			c.change(n)
			err := lifecycle.MayStillRepair(&Config{}, n, SidecarKey(scene.ThePod), "r1-0-1")
			require.Equal(t, c.may, err == nil, "%v", err)
		})
	}
}

func pendingRepair() string {
	r := Record{V: 1, ID: "r9", Policy: "p", Cause: Cause{Alert: "a"}, Phase: PhasePending, Step: StepRef{Name: "reboot", Attempt: 1}, Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon.Add(time.Hour)}
	return r.Encode()
}

// TestSidecarNeverMovesItsNode: alerts about sidecars cause no repair of their node, do not count
// as a fault of the node, and are not in its record. While a sidecar is under repair, the node's
// repair waits.
func TestSidecarNeverMovesItsNode(t *testing.T) {
	state := func(text string) *lifecycle.State { return scene.ReadSidecar(t, text).SidecarState(t).State }
	d := node.Decide(state(`{alerts: [{}, {fingerprint: "00000000000000aa", active: true}]}`), scene.Noon)
	require.Equal(t, lifecycle.VerbRest, d.Verb, "an alert about a pod starts nothing on its node")
	require.Empty(t, d.Prune, "and is not the node's to drop")
	d = node.Decide(state(`{alerts: [{status: resolved}], word: {replicas: [{alert: absent}, {alert: absent}]}}`), scene.Noon)
	require.Empty(t, d.Prune)

	// The node has a fault of its own, beside the sidecar's.
	sick := func(sidecar Phase) lifecycle.Decision {
		sc := &scene.Scene{Alerts: []scene.Alert{{}, {Fingerprint: "00000000000000aa", Policy: "sidecar-not-ready", Active: true}}}
		s := sc.State(t)
		s.Config.Policies = append(s.Config.Policies, &Policy{Name: "sidecar-not-ready", Mode: ModeEnforce, Kind: KindSidecar, Labels: []string{"namespace", "pod"}, Plan: []Step{{Name: "mark-ready", Provider: "sei", Attempts: 3}}})
		if sidecar != "" {
			s.Node.Annotations[SidecarKey(scene.ThePod)] = scene.SidecarRecord(sidecar).Encode()
			s.Journal = ReadJournal(s.Node)
			require.NoError(t, s.Journal.Malformed)
		}
		return node.Decide(s, scene.Noon)
	}
	for _, phase := range []Phase{"", PhasePending, PhaseExhausted} {
		d := sick(phase)
		require.Equal(t, lifecycle.VerbIssue, d.Verb, "%s: %s", phase, d.Message)
		require.Empty(t, d.Record.Also, "a sidecar's alert is none of the node's")
	}
	for _, phase := range []Phase{PhaseActing, PhaseVerifying} {
		d := sick(phase)
		require.Equal(t, ReasonNodeUnderRepair, d.Reason, "%s: %s", phase, d.Message)
	}
}

// TestASidecarCannotBeRequestedOnANode: a request cannot name a pod.
func TestASidecarCannotBeRequestedOnANode(t *testing.T) {
	s := scene.ReadSidecar(t, `{}`).SidecarState(t)
	for _, request := range []string{"mark-ready", "remediation/mark-ready", "policy/sidecar-not-ready", "sidecar-not-ready"} {
		s.Node.Annotations[RequestKey] = request
		d := node.Decide(s.State, scene.Noon)
		require.NotEqual(t, lifecycle.VerbIssue, d.Verb, request)
		require.Nil(t, d.Record, request)
		require.Equal(t, []string{RequestKey}, d.Consume, "%s is answered, not left", request)
		require.Len(t, d.Notices, 1, request)
		require.Contains(t, d.Notices[0].Message, RequestKey)
	}
	require.ErrorContains(t, second(s.Config.ParseRequest("policy/sidecar-not-ready")), "only an alert can start this repair")
}

func second(_ string, err error) error { return err }

// TestResetForgetsExhaustedSidecars: a reset of the node removes exhausted repairs of its sidecars,
// and does not touch sidecars under repair.
func TestResetForgetsExhaustedSidecars(t *testing.T) {
	s := scene.ReadSidecar(t, `{node: {annotations: {drydock.dev/reset: "true"}}}`).SidecarState(t)
	busy := Pod{Namespace: "sei", Name: "b-0", UID: "pod2"}
	other := scene.SidecarRecord(PhaseVerifying)
	other.Pod = &busy
	s.Node.Annotations[SidecarKey(scene.ThePod)], s.Node.Annotations[SidecarKey(busy)] = scene.SidecarRecord(PhaseExhausted).Encode(), other.Encode()
	s.Journal = ReadJournal(s.Node)
	d := node.Decide(s.State, scene.Noon)
	require.Equal(t, lifecycle.VerbRest, d.Verb)
	require.Equal(t, []string{SidecarKey(scene.ThePod)}, d.Prune)
	require.Equal(t, []string{ResetKey}, d.Consume)
	require.Empty(t, d.Notices)

	for phase, want := range map[Phase][]string{PhasePending: {SidecarKey(scene.ThePod)}, PhaseVerifying: nil} {
		r := Record{V: 1, ID: "r9", Policy: "p", Cause: Cause{Alert: "a"}, Phase: phase, Step: StepRef{Name: "reboot", Attempt: 1}, Since: scene.Noon, Deadline: scene.Noon.Add(time.Hour), Intent: &Intent{ID: "r9-0-1", At: scene.Noon}}
		s.Node.Annotations[NodeRepairKey] = r.Encode()
		s.Journal = ReadJournal(s.Node)
		require.Equal(t, want, node.Decide(s.State, scene.Noon).Prune, "the node's own repair is %s", phase)
	}
}

// TestCancelOfASidecarIsItsOwn: a person's cancel may be for a sidecar's repair. Then the decision
// about the sidecar handles it. Otherwise the decision about the node answers it.
func TestCancelOfASidecarIsItsOwn(t *testing.T) {
	for phase, consumed := range map[Phase]bool{PhaseActing: false, PhaseVerifying: false, PhasePending: false, PhaseExhausted: true} {
		s := scene.ReadSidecar(t, `{node: {annotations: {drydock.dev/cancel: r1}}}`).SidecarState(t)
		s.Node.Annotations[SidecarKey(scene.ThePod)] = scene.SidecarRecord(phase).Encode()
		s.Journal = ReadJournal(s.Node)
		require.Equal(t, consumed, len(node.Decide(s.State, scene.Noon).Consume) > 0, phase)
	}
}

// TestSidecarsRecordIsStrict: a record of a sidecar that this version would not have written is
// unreadable, and holds the node.
func TestSidecarsRecordIsStrict(t *testing.T) {
	for name, change := range map[string]func(*Record){
		"no intent":         func(r *Record) { r.Phase, r.Intent = PhasePending, nil },
		"no intent's time":  func(r *Record) { r.Phase, r.Intent.At = PhasePending, time.Time{} },
		"no name":           func(r *Record) { r.Pod.Name = "" },
		"no namespace":      func(r *Record) { r.Pod.Namespace = "" },
		"another pod's":     func(r *Record) { r.Pod.Name = "b-0" },
		"no pod at all":     func(r *Record) { r.Pod = nil },
		"an unknown phase":  func(r *Record) { r.Phase = "Healing" },
		"a later version's": func(r *Record) { r.V = 2 },
	} {
		r := scene.SidecarRecord(PhaseVerifying)
		change(r)
		n := scene.Bare("n1")
		n.Annotations[SidecarKey(scene.ThePod)] = r.Encode()
		j := ReadJournal(n)
		require.Error(t, j.Malformed, name)
		require.Empty(t, j.Records, name)
	}
	n := scene.Bare("n1")
	n.Annotations[NodeRepairKey] = scene.SidecarRecord(PhaseVerifying).Encode()
	require.ErrorContains(t, ReadJournal(n).Malformed, "name different targets")
}

// TestSidecarKeyIsThePods: each pod has a different key, which does not depend on the pod's UID.
func TestSidecarKeyIsThePods(t *testing.T) {
	again := scene.ThePod
	again.UID = "pod2"
	require.Equal(t, SidecarKey(scene.ThePod), SidecarKey(again))
	require.NotEqual(t, SidecarKey(Pod{Namespace: "a-b", Name: "c"}), SidecarKey(Pod{Namespace: "a", Name: "b-c"}))
	require.Regexp(t, `^repair\.drydock\.dev/sidecar-[0-9a-f]{16}$`, SidecarKey(scene.ThePod))
	require.True(t, Owned(SidecarKey(scene.ThePod)))
	require.True(t, Relevant(SidecarKey(scene.ThePod)))
}
