package admission_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/remediations/testing/scene"
	"drydock.dev/drydock/test/admission/requests"
)

// meshRepair puts on the node a repair of the leader of location eu, whose leadership moves from
// the node to n2.
func meshRepair(n *corev1.Node, p remediations.Phase) {
	r := requests.Record(p)
	r.Step.Name, r.Location = "promote-leader", "eu"
	if r.Intent == nil {
		r.Intent = &remediations.Intent{ID: r.ID + "-0-1", At: requests.Now}
	}
	r.Intent.Successor = "n2"
	r.Moves = []remediations.Move{{Location: "eu", From: n.Name, To: "n2", Before: map[string]*string{n.Name: nil, "n2": nil, "n7": nil}}}
	n.Annotations[remediations.LocationKey], n.Labels[remediations.PhaseLabel] = r.Encode(), string(p)
}

// TestMeshLeadersKeyIsLeftAloneWhileLeadershipMoves: the annotation is protected on the old leader,
// on the nodes in the move, and on Nodes of the same location. It is not protected on other Nodes,
// and on no Node when nothing is in flight.
func TestMeshLeadersKeyIsLeftAloneWhileLeadershipMoves(t *testing.T) {
	named := func(name string) func(*corev1.Node) { return func(n *corev1.Node) { n.Name = name } }
	breakGlass := func(n *corev1.Node) { n.Annotations[remediations.BreakGlassKey] = "why" }
	person, kilo := requests.Person, requests.User{Name: "system:serviceaccount:kube-system:kilo", Groups: []string{"system:serviceaccounts:kube-system"}}
	for name, c := range map[string]struct {
		phase  remediations.Phase
		node   func(*corev1.Node)
		leader func(*corev1.Node)
		by     requests.User
		denied bool
	}{
		"the successor":                  {remediations.PhaseVerifying, named("n2"), nil, person, true},
		"one that loses the key":         {remediations.PhaseActing, named("n7"), nil, person, true},
		"a member by its label":          {remediations.PhaseVerifying, func(n *corev1.Node) { n.Labels["region"] = "eu" }, nil, person, true},
		"a member by its annotation":     {remediations.PhaseVerifying, func(n *corev1.Node) { n.Annotations[admission.MeshLocationKey] = "eu" }, nil, person, true},
		"one whose annotation outranks":  {remediations.PhaseVerifying, func(n *corev1.Node) { n.Annotations[admission.MeshLocationKey] = ""; n.Labels["region"] = "eu" }, nil, person, false},
		"one of another location":        {remediations.PhaseVerifying, func(n *corev1.Node) { n.Labels["region"] = "us" }, nil, person, false},
		"while it waits":                 {remediations.PhasePending, named("n2"), nil, person, false},
		"when it has run out":            {remediations.PhaseExhausted, named("n2"), nil, person, false},
		"break-glass is set here":        {remediations.PhaseVerifying, func(n *corev1.Node) { n.Name = "n2"; breakGlass(n) }, nil, person, false},
		"break-glass is set there":       {remediations.PhaseVerifying, named("n2"), breakGlass, person, false},
		"by Kilo itself":                 {remediations.PhaseVerifying, named("n2"), nil, kilo, false},
		"by Drydock":                     {remediations.PhaseVerifying, named("n2"), nil, requests.Drydock, false},
		"by the node's own kubelet":      {remediations.PhaseVerifying, named("n2"), nil, requests.Kubelet, false},
		"a record that cannot be read":   {remediations.PhaseVerifying, named("n2"), func(n *corev1.Node) { n.Annotations[remediations.LocationKey] = "{" }, person, false},
		"a record of something else yet": {remediations.PhaseVerifying, named("n2"), func(n *corev1.Node) { n.Annotations[remediations.LocationKey] = requests.Record("Acting").Encode() }, person, false},
	} {
		t.Run(name, func(t *testing.T) {
			n, leader := requests.Bare(), requests.Bare()
			n.Name, leader.Name = "n3", "n9"
			meshRepair(leader, c.phase)
			c.node(n)
			if c.leader != nil {
				c.leader(leader)
			}
			for _, mode := range []remediations.Mode{remediations.ModeEnforce, remediations.ModeObserve} {
				config := requests.Config(mode)
				config.TopologyLabel = "region"
				judge := func(before, after *corev1.Node) admission.Decision {
					ch := (&requests.Case{By: c.by}).ChangeOf()
					ch.Old, ch.New = before, after
					return admission.Validate(config, ch, func() []*corev1.Node { return []*corev1.Node{leader, before} }, requests.Now)
				}
				with := n.DeepCopy()
				with.Annotations[admission.MeshLeaderKey] = ""
				other := with.DeepCopy()
				other.Annotations[admission.MeshLeaderKey] = "true"
				for _, v := range []admission.Decision{judge(n, with), judge(with, n), judge(with, other)} {
					denied := c.denied && mode == remediations.ModeEnforce
					require.Equal(t, denied, !v.Allowed, "%+v", v)
					require.Equal(t, c.denied, v.Reason == admission.ReasonMeshLeader && !v.BreakGlass, "%+v", v)
					if denied {
						require.Contains(t, v.Message, "node n9 is under repair n7q4k2")
						require.Contains(t, v.Message, "changing kilo.squat.ai/leader on node "+n.Name+" of the same location")
					}
				}
				other.Spec.Unschedulable = true
				other.Annotations = with.Annotations
				require.True(t, judge(with, other).Allowed, "everything else there is everybody's")
			}
		})
	}
}

// TestNodesAreListedForAMeshLeadersKeyAlone: other requests do not list the fleet.
func TestNodesAreListedForAMeshLeadersKeyAlone(t *testing.T) {
	n := requests.Bare()
	after := n.DeepCopy()
	after.Spec.Unschedulable = true
	v := admission.Validate(requests.Config(remediations.ModeEnforce), &admission.Change{Old: n, New: after, User: "jane"}, func() []*corev1.Node {
		t.Error("the fleet was looked at")
		return nil
	}, requests.Now)
	require.True(t, v.Allowed)
}

// TestCancelAndApproveOfWhateverIsRepairedAreUnderstood: the values may be the id of the node's
// repair, of the leader's repair, or of a sidecar's repair.
func TestCancelAndApproveOfWhateverIsRepairedAreUnderstood(t *testing.T) {
	n := requests.Bare()
	meshRepair(n, remediations.PhaseVerifying)
	r := requests.Record(remediations.PhaseVerifying)
	r.ID, r.Intent.ID, r.Step.Name, r.Pod = "s1d2e3", "s1d2e3-0-1", "mark-ready", &scene.ThePod
	n.Annotations[remediations.SidecarKey(scene.ThePod)] = r.Encode()
	for _, key := range []string{remediations.CancelKey, remediations.ApproveKey} {
		for _, id := range []string{"n7q4k2", "s1d2e3"} {
			after := n.DeepCopy()
			after.Annotations[key] = id
			v := judge(remediations.ModeEnforce, &admission.Change{Old: n, New: after, User: "jane"})
			require.True(t, v.Allowed)
			require.Empty(t, v.Warnings, "%s=%s", key, id)
		}
		after := n.DeepCopy()
		after.Annotations[key] = "abcdef"
		v := judge(remediations.ModeEnforce, &admission.Change{Old: n, New: after, User: "jane"})
		require.Equal(t, admission.ReasonUnknownRepair, v.Reason)
	}
}

// TestALeadersRepairBindsTheNodesItNames: where it takes leadership from and to, even if it changes
// no key there and the Nodes name no location. It binds its own Node no longer than its record is
// there, even where the list of Nodes is older, and it warns where its policy only observes.
func TestALeadersRepairBindsTheNodesItNames(t *testing.T) {
	repair := func(name, policy string) *corev1.Node {
		n := requests.Bare()
		n.Name = name
		r := requests.Record(remediations.PhaseVerifying)
		r.Policy, r.Step.Name, r.Location, r.Intent.Successor = policy, "promote-leader", "eu", "n2"
		r.Moves = []remediations.Move{{Location: "eu", From: "n1", To: "n2", Before: map[string]*string{"n7": nil}}}
		n.Annotations[remediations.LocationKey] = r.Encode()
		return n
	}
	for name, c := range map[string]struct {
		node    string
		leader  *corev1.Node
		allowed bool
		reason  admission.Reason
	}{
		"the one it takes leadership from": {"n1", repair("n9", "node-not-ready"), false, admission.ReasonMeshLeader},
		"the one that it makes the leader": {"n2", repair("n9", "node-not-ready"), false, admission.ReasonMeshLeader},
		"one whose key it changes":         {"n7", repair("n9", "node-not-ready"), false, admission.ReasonMeshLeader},
		"another":                          {"n8", repair("n9", "node-not-ready"), true, admission.ReasonNone},
		"its policy was removed":           {"n2", repair("n9", "gone"), false, admission.ReasonMeshLeader},
		"its policy only observes":         {"n2", repair("n9", "only-observes"), true, admission.ReasonMeshLeader},
		"its own, whose record is gone":    {"n2", repair("n2", "node-not-ready"), true, admission.ReasonNone},
	} {
		t.Run(name, func(t *testing.T) {
			n := requests.Bare()
			n.Name = c.node
			after := n.DeepCopy()
			after.Annotations[admission.MeshLeaderKey] = ""
			d := admission.Validate(requests.Config(remediations.ModeEnforce), &admission.Change{Old: n, New: after, User: "jane"},
				func() []*corev1.Node { return []*corev1.Node{c.leader} }, requests.Now)
			require.Equal(t, c.allowed, d.Allowed, "%+v", d)
			require.Equal(t, c.reason, d.Reason, "%+v", d)
		})
	}
}
