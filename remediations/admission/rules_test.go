package admission_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/test/admission/requests"
)

// in puts the record of a repair in that phase on the Node.
func in(phase remediations.Phase) func(*corev1.Node) {
	return func(n *corev1.Node) { requests.Put(n, requests.Record(phase)) }
}

func cordon(n *corev1.Node) { n.Spec.Unschedulable = true }

// owned gives the Node an owner that does not exist, which enforce mode denies nodes, too.
func owned(n *corev1.Node) {
	n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "gone", UID: "gone"}}
}

func tainted(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
	}
}

func all(changes ...func(*corev1.Node)) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for _, change := range changes {
			change(n)
		}
	}
}

// decide returns the decision about a person's change of a Node.
func decide(before, change func(*corev1.Node)) admission.Decision {
	c := requests.Case{Before: before, Change: change, By: requests.Person}
	return judge(remediations.ModeEnforce, c.ChangeOf())
}

// TestADeniedRequestHasNoWarnings: the person reads only why it is denied.
func TestADeniedRequestHasNoWarnings(t *testing.T) {
	pause := requests.Annotate(remediations.PauseKey, "tomorrow")
	require.Len(t, decide(in(remediations.PhaseVerifying), pause).Warnings, 1, "the control")
	d := decide(in(remediations.PhaseVerifying), all(pause, cordon))
	require.Equal(t, admission.ReasonCordon, d.Reason)
	require.Empty(t, d.Warnings)
}

// TestTheFirstOfSeveralWarningsIsTheReason, and all of them are shown.
func TestTheFirstOfSeveralWarningsIsTheReason(t *testing.T) {
	d := decide(nil, all(requests.Annotate(remediations.PauseKey, "tomorrow"), requests.Annotate(remediations.ApproveKey, requests.ID)))
	require.True(t, d.Allowed)
	require.Equal(t, admission.ReasonUnknownRepair, d.Reason)
	require.Len(t, d.Warnings, 2)
}

// TestBreakGlassNamesWhatItAllowed: each denial that it overrides, and nothing that would have been
// allowed with a warning.
func TestBreakGlassNamesWhatItAllowed(t *testing.T) {
	breakGlass := requests.Annotate(remediations.BreakGlassKey, "why")
	d := decide(all(in(remediations.PhaseVerifying), breakGlass), all(cordon, tainted("x", corev1.TaintEffectNoExecute)))
	require.Equal(t, admission.Decision{Allowed: true, BreakGlass: true, Reason: admission.ReasonCordon, Message: "cordoning the node, tainting the node with x:NoExecute"}, d)

	observed := func(n *corev1.Node) {
		r := requests.Record(remediations.PhaseVerifying)
		r.Policy = "only-observes"
		requests.Put(n, r)
	}
	require.Len(t, decide(observed, cordon).Warnings, 1, "the control")
	require.Equal(t, admission.Decision{Allowed: true, Reason: admission.ReasonNone}, decide(all(observed, breakGlass), cordon))
}

// TestOnePolicyThatEnforcesIsEnough: an installation only observes if its mode and all its policies
// do.
func TestOnePolicyThatEnforcesIsEnough(t *testing.T) {
	for _, c := range []struct {
		mode, policy remediations.Mode
		denied       bool
	}{
		{remediations.ModeObserve, remediations.ModeObserve, false},
		{remediations.ModeObserve, remediations.ModeEnforce, true},
		{remediations.ModeEnforce, remediations.ModeObserve, true},
	} {
		config := requests.Config(c.policy)
		config.Mode = c.mode
		n := requests.Bare()
		r := requests.Record(remediations.PhaseVerifying)
		r.Policy = "gone"
		requests.Put(n, r)
		d := admission.Validate(config, &admission.Change{Old: n, User: "jane"}, func() []*corev1.Node { return nil }, requests.Now)
		require.Equal(t, c.denied, !d.Allowed, "%+v", c)
		require.Equal(t, c.denied, len(d.Warnings) == 0, "%+v", c)
	}
}

// TestANodesIdentityIsItsNameOrItsGroup: either is enough.
func TestANodesIdentityIsItsNameOrItsGroup(t *testing.T) {
	for _, by := range []requests.User{{Name: "system:node:n1"}, {Name: "kubelet", Groups: []string{"system:nodes"}}} {
		c := requests.Case{Change: requests.Annotate(remediations.PauseKey, "true"), By: by}
		require.Equal(t, admission.ReasonNodeIdentity, judge(remediations.ModeEnforce, c.ChangeOf()).Reason, by.Name)
	}
	c := requests.Case{Change: requests.Annotate(remediations.PauseKey, "true"), By: requests.User{Name: "kubelet"}}
	require.True(t, judge(remediations.ModeEnforce, c.ChangeOf()).Allowed, "the control")
}

// TestARepairThatRanOutDoesNotDenyTheNextRequest: the request is refused until a reset, and the
// warning says so.
func TestARepairThatRanOutDoesNotDenyTheNextRequest(t *testing.T) {
	requested := func(phase remediations.Phase) admission.Decision {
		return decide(func(n *corev1.Node) {
			r := requests.Record(phase)
			r.Cause = remediations.Cause{Request: "remediation/reboot"}
			requests.Put(n, r)
		}, requests.Annotate(remediations.RequestKey, "reboot"))
	}
	require.Equal(t, admission.ReasonRequestPending, requested(remediations.PhasePending).Reason, "the control")
	d := requested(remediations.PhaseExhausted)
	require.True(t, d.Allowed)
	require.Equal(t, admission.ReasonRequestExhausted, d.Reason)
}

// TestAnEmptyRequestIsARequest, and so collides with the repair in flight. An old one that stays
// does not.
func TestAnEmptyRequestIsARequest(t *testing.T) {
	empty := requests.Annotate(remediations.RequestKey, "")
	require.Equal(t, admission.ReasonRequestInFlight, decide(in(remediations.PhaseVerifying), empty).Reason)
	require.True(t, decide(all(in(remediations.PhaseVerifying), empty), requests.Annotate("example.com/rack", "r2")).Allowed)
}

// TestTaintsInFlight: only Drydock removes its own taints, and no taint that evicts pods at once is
// added. A taint is one of a key and an effect.
func TestTaintsInFlight(t *testing.T) {
	const ours, other = "drydock.example/draining", "example.com/other"
	recorded := func(kind string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			r := requests.Record(remediations.PhaseVerifying)
			r.Undo = []remediations.Undo{{Kind: kind, Key: ours, At: requests.Now}}
			requests.Put(n, r)
		}
	}
	only := func(taints ...corev1.Taint) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = taints }
	}
	labelled := func(n *corev1.Node) { n.Labels[remediations.PhaseLabel] = "Verifying" }
	soft, hard := tainted(ours, corev1.TaintEffectNoSchedule), tainted(ours, corev1.TaintEffectNoExecute)
	for name, c := range map[string]struct {
		before, change func(*corev1.Node)
		reason         admission.Reason
		says           string
	}{
		"ours removed":                        {all(recorded(remediations.UndoTaint), soft), only(), admission.ReasonTaintRemoved, "removing the node's taint drydock.example/draining:NoSchedule"},
		"ours removed, its other effect kept": {all(recorded(remediations.UndoTaint), soft, hard), only(corev1.Taint{Key: ours, Effect: corev1.TaintEffectNoExecute}), admission.ReasonTaintRemoved, "draining:NoSchedule"},
		"ours kept, another removed":          {all(recorded(remediations.UndoTaint), soft, tainted(other, corev1.TaintEffectNoSchedule)), only(corev1.Taint{Key: ours, Effect: corev1.TaintEffectNoSchedule}), admission.ReasonNone, ""},
		"one with the key of an announcement": {all(recorded(remediations.UndoAnnotation), soft), only(), admission.ReasonNone, ""},
		"where no record can be read":         {all(labelled, soft), only(), admission.ReasonNone, ""},
		"ours, with the Node":                 {all(recorded(remediations.UndoTaint), soft), nil, admission.ReasonDeletion, "deleting the node"},
		"NoExecute added":                     {in(remediations.PhaseVerifying), hard, admission.ReasonNoExecute, "tainting the node with drydock.example/draining:NoExecute"},
		"NoExecute added beside another key":  {all(in(remediations.PhaseVerifying), tainted(other, corev1.TaintEffectNoExecute)), hard, admission.ReasonNoExecute, ours},
		"NoExecute in place of NoSchedule":    {all(in(remediations.PhaseVerifying), soft), only(corev1.Taint{Key: ours, Effect: corev1.TaintEffectNoExecute}), admission.ReasonNoExecute, ours},
		"NoExecute that was there":            {all(in(remediations.PhaseVerifying), hard), requests.Annotate("example.com/rack", "r2"), admission.ReasonNone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(c.before, c.change)
			require.Equal(t, c.reason, d.Reason)
			require.Equal(t, c.reason == admission.ReasonNone, d.Allowed)
			require.Contains(t, d.Message, c.says)
		})
	}
	c := requests.Case{Before: all(recorded(remediations.UndoTaint), soft), Change: only(), By: requests.Kubelet}
	require.True(t, judge(remediations.ModeEnforce, c.ChangeOf()).Allowed, "a kubelet's change never depends on Drydock")
}

// TestADeniedUncordonIsCalledOne, and not a cordon.
func TestADeniedUncordonIsCalledOne(t *testing.T) {
	d := decide(all(in(remediations.PhaseVerifying), cordon), func(n *corev1.Node) { n.Spec.Unschedulable = false })
	require.Contains(t, d.Message, "uncordoning the node would collide with the repair")
}

// TestTheLabelDecidesAboutDrivers: the ValidatingAdmissionPolicy reads nothing else, so the record
// counts only where the label shows no repair in flight.
func TestTheLabelDecidesAboutDrivers(t *testing.T) {
	for _, c := range []struct {
		label, record remediations.Phase
		denied        bool
	}{
		{remediations.PhaseVerifying, remediations.PhaseActing, false},
		{remediations.PhaseActing, remediations.PhaseVerifying, true},
		{remediations.PhasePending, remediations.PhaseVerifying, false},
		{remediations.PhasePending, remediations.PhaseActing, true},
	} {
		before := func(n *corev1.Node) {
			in(c.record)(n)
			n.Labels[remediations.PhaseLabel] = string(c.label)
		}
		change := requests.Case{Before: before, Change: cordon, By: requests.Driver}
		require.Equal(t, c.denied, !judge(remediations.ModeEnforce, change.ChangeOf()).Allowed, "%+v", c)
	}
}

// TestEitherTheLabelOrTheRecordShowsARepairInFlight.
func TestEitherTheLabelOrTheRecordShowsARepairInFlight(t *testing.T) {
	c := requests.Config(remediations.ModeEnforce)
	n := requests.Bare()
	require.False(t, admission.InFlight(c, n))
	n.Labels[remediations.PhaseLabel] = "Verifying"
	require.True(t, admission.InFlight(c, n))
	in(remediations.PhaseVerifying)(n)
	n.Labels[remediations.PhaseLabel] = "Pending"
	require.True(t, admission.InFlight(c, n))
	in(remediations.PhasePending)(n)
	require.False(t, admission.InFlight(c, n))
}

// TestARightThatWasNotAskedForAllowsNothing: outsiders can cause that no right is checked, so even
// an annotation that only stops repairs is denied then.
func TestARightThatWasNotAskedForAllowsNothing(t *testing.T) {
	cancel := func(err error) admission.Decision {
		c := requests.Case{Before: in(remediations.PhaseVerifying), Change: requests.Annotate(remediations.CancelKey, requests.ID), By: requests.Person}
		ch := c.ChangeOf()
		ch.May = func(string) (bool, error) { return false, err }
		return judge(remediations.ModeEnforce, ch)
	}
	require.True(t, cancel(errors.New("no answer in 1s")).Allowed, "the control")
	d := cancel(fmt.Errorf("%w: too many rights are being checked", admission.ErrNotAsked))
	require.False(t, d.Allowed)
	require.Equal(t, admission.ReasonRightUnknown, d.Reason)
}

// TestRightsThatAreOffDenyNothing: no rule asks then, and the other rules stay.
func TestRightsThatAreOffDenyNothing(t *testing.T) {
	remove := func(before func(*corev1.Node)) admission.Decision {
		c := requests.Case{Before: before, Change: func(n *corev1.Node) { delete(n.Annotations, remediations.NodeRepairKey) }, By: requests.Person}
		ch := c.ChangeOf()
		ch.May = nil
		return judge(remediations.ModeEnforce, ch)
	}
	require.True(t, remove(in(remediations.PhaseExhausted)).Allowed)
	require.Equal(t, admission.ReasonOwnKeyRemoved, remove(in(remediations.PhaseVerifying)).Reason)
}

// TestAnEmptyValueNeedsItsRight, as any value does.
func TestAnEmptyValueNeedsItsRight(t *testing.T) {
	c := requests.Case{Change: requests.Annotate(remediations.BreakGlassKey, ""), By: requests.Person, Unentitled: true}
	require.Equal(t, admission.ReasonRightMissing, judge(remediations.ModeEnforce, c.ChangeOf()).Reason)
	c.Before, c.Change = c.Change, requests.Annotate("example.com/rack", "r2")
	require.True(t, judge(remediations.ModeEnforce, c.ChangeOf()).Allowed, "it was there before")
}

// TestEachAnnotationOfAChangeNeedsItsRight: the right to one gives no other.
func TestEachAnnotationOfAChangeNeedsItsRight(t *testing.T) {
	c := requests.Case{Change: all(requests.Annotate(remediations.RequestKey, "reboot"), requests.Annotate(remediations.ResetKey, "true")), By: requests.Person}
	for _, verb := range []string{"request", "reset"} {
		ch := c.ChangeOf()
		ch.May = func(v string) (bool, error) { return v == verb, nil }
		require.Equal(t, admission.ReasonRightMissing, judge(remediations.ModeEnforce, ch).Reason, "only the right to %s", verb)
	}
	require.True(t, judge(remediations.ModeEnforce, c.ChangeOf()).Allowed, "the control")
	c = requests.Case{Create: true, Change: requests.Annotate(remediations.RequestKey, "reboot"), By: requests.Person, Unentitled: true}
	require.Equal(t, admission.ReasonRightMissing, judge(remediations.ModeEnforce, c.ChangeOf()).Reason, "on a new Node, too")
}

// TestNodesIdentitiesCauseNoReview: they are denied without a question to the API server, so they
// use up nothing of what people's requests may ask.
func TestNodesIdentitiesCauseNoReview(t *testing.T) {
	c := requests.Case{Change: requests.Annotate(remediations.RequestKey, "reboot"), By: requests.Kubelet}
	ch := c.ChangeOf()
	asked := 0
	ch.May = func(string) (bool, error) { asked++; return true, nil }
	require.Equal(t, admission.ReasonNodeIdentity, judge(remediations.ModeEnforce, ch).Reason)
	require.Zero(t, asked)
	ch.User, ch.Groups = "jane", nil
	require.True(t, judge(remediations.ModeEnforce, ch).Allowed)
	require.Equal(t, 1, asked, "the control")
}

// TestEachAnnotationHasItsVerb, and a pause needs none.
func TestEachAnnotationHasItsVerb(t *testing.T) {
	for key, verb := range map[string]string{
		remediations.RequestKey: "request", remediations.ApproveKey: "approve", remediations.ResetKey: "reset",
		remediations.CancelKey: "cancel", remediations.BreakGlassKey: "break-glass", remediations.PauseKey: "",
	} {
		require.Equal(t, verb, admission.VerbFor(key), key)
	}
}

// TestKeysInTheWrongPlaceAreNotRead: an exclusion is a label, and all other keys of people are
// annotations.
func TestKeysInTheWrongPlaceAreNotRead(t *testing.T) {
	label := func(key string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels[key] = "true" }
	}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		warned bool
	}{
		"an exclusion":                 {label(remediations.ExcludeLabel), false},
		"an exclusion as annotation":   {requests.Annotate(remediations.ExcludeLabel, "true"), true},
		"a pause":                      {requests.Annotate(remediations.PauseKey, "true"), false},
		"a pause as label":             {label(remediations.PauseKey), true},
		"a cancel as label":            {label(remediations.CancelKey), true},
		"a reset":                      {requests.Annotate(remediations.ResetKey, "true"), false},
		"break-glass with a reason":    {requests.Annotate(remediations.BreakGlassKey, "why"), false},
		"break-glass without a reason": {requests.Annotate(remediations.BreakGlassKey, " "), true},
	} {
		d := decide(nil, c.change)
		require.True(t, d.Allowed, name)
		require.Equal(t, c.warned, len(d.Warnings) > 0, name)
		require.Equal(t, c.warned, d.Reason == admission.ReasonUnreadable, name)
	}
}

// TestOnlyAPersonsUncordonOfAnExhaustedNodeIsWarnedOf: a kubelet cannot end a repair, and other
// changes return no node to pods.
func TestOnlyAPersonsUncordonOfAnExhaustedNodeIsWarnedOf(t *testing.T) {
	uncordon := func(n *corev1.Node) { n.Spec.Unschedulable = false }
	for name, c := range map[string]struct {
		before, change func(*corev1.Node)
		by             requests.User
		warned         bool
	}{
		"a person's":                  {all(in(remediations.PhaseExhausted), cordon), uncordon, requests.Person, true},
		"a kubelet's":                 {all(in(remediations.PhaseExhausted), cordon), uncordon, requests.Kubelet, false},
		"of a node without a repair":  {cordon, uncordon, requests.Person, false},
		"a label on a cordoned node":  {all(in(remediations.PhaseExhausted), cordon), func(n *corev1.Node) { n.Labels["team"] = "a" }, requests.Person, false},
		"of a node that takes pods":   {in(remediations.PhaseExhausted), uncordon, requests.Person, false},
		"of a repair that only waits": {all(in(remediations.PhasePending), cordon), uncordon, requests.Person, false},
	} {
		change := requests.Case{Before: c.before, Change: c.change, By: c.by}
		d := judge(remediations.ModeEnforce, change.ChangeOf())
		require.True(t, d.Allowed, name)
		require.Equal(t, c.warned, len(d.Warnings) == 1, name)
	}
}

// TestTheWarningNamesTheRepairThatTheNodeHas, if a person wrote another ID.
func TestTheWarningNamesTheRepairThatTheNodeHas(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*corev1.Node)
		id     string
		says   string
	}{
		"another repair's":        {in(remediations.PhaseVerifying), "zzzzzz", "the repair of node n1 is " + requests.ID},
		"where the node has none": {nil, "zzzzzz", "node n1 has no repair in progress"},
		"an empty one":            {in(remediations.PhaseVerifying), "", "the repair of node n1 is " + requests.ID},
	} {
		d := decide(c.before, requests.Annotate(remediations.CancelKey, c.id))
		require.True(t, d.Allowed, name)
		require.Equal(t, admission.ReasonUnknownRepair, d.Reason, name)
		require.Contains(t, d.Warnings[0], c.says, name)
	}
}

// TestObserveModeWarnsOfWhatEnforceModeWouldDeny: a change of a node that would be under repair
// now. A user who is exempt gets no warning.
func TestObserveModeWarnsOfWhatEnforceModeWouldDeny(t *testing.T) {
	held := func(phase remediations.Phase, reason remediations.Reason) func(*corev1.Node) {
		return func(n *corev1.Node) {
			r := requests.Record(phase)
			r.Policy, r.Hold = "only-observes", &remediations.Hold{Reason: reason, Message: "would reboot n1 now", Since: requests.Now}
			requests.Put(n, r)
		}
	}
	observing := held(remediations.PhasePending, remediations.ReasonObserving)
	const would, collides = "Drydock would reboot n1 now", "in enforce mode this would be denied"
	for name, c := range map[string]struct {
		before, change func(*corev1.Node)
		by             requests.User
		says           string
	}{
		"a cordon":                     {observing, cordon, requests.Person, would},
		"a deletion":                   {observing, nil, requests.Person, would},
		"a label":                      {observing, func(n *corev1.Node) { n.Labels["team"] = "a" }, requests.Person, ""},
		"a pause":                      {observing, requests.Annotate(remediations.PauseKey, "true"), requests.Person, ""},
		"a record removed":             {observing, func(n *corev1.Node) { delete(n.Annotations, remediations.NodeRepairKey) }, requests.Person, ""},
		"a cordon by one exempt":       {observing, cordon, requests.Autoscale, ""},
		"a cordon by the kubelet":      {observing, cordon, requests.Kubelet, ""},
		"an owner by the kubelet":      {observing, owned, requests.Kubelet, would},
		"a cordon while another holds": {held(remediations.PhasePending, remediations.ReasonPaused), cordon, requests.Person, ""},
		"a cordon in flight":           {held(remediations.PhaseVerifying, remediations.ReasonObserving), cordon, requests.Person, collides},
	} {
		t.Run(name, func(t *testing.T) {
			change := requests.Case{Before: c.before, Change: c.change, By: c.by}
			d := judge(remediations.ModeObserve, change.ChangeOf())
			require.True(t, d.Allowed)
			if c.says == "" {
				require.Empty(t, d.Warnings)
				return
			}
			require.Len(t, d.Warnings, 1)
			require.Contains(t, d.Warnings[0], c.says)
		})
	}
}

// TestWhatBecomesOfARequest: the warning says whether it will be refused, or waits.
func TestWhatBecomesOfARequest(t *testing.T) {
	east, err := labels.Parse("zone=east")
	require.NoError(t, err)
	busy := requests.Bare()
	busy.Name = "n2"
	in(remediations.PhaseVerifying)(busy)
	for name, c := range map[string]struct {
		request string
		zone    string
		mode    remediations.Mode
		others  []*corev1.Node
		reason  admission.Reason
	}{
		"a reboot":                             {"remediation/reboot", "", remediations.ModeEnforce, nil, admission.ReasonNone},
		"a reboot where only observed":         {"remediation/reboot", "", remediations.ModeObserve, nil, admission.ReasonRequestIdle},
		"a reboot behind another":              {"remediation/reboot", "", remediations.ModeEnforce, []*corev1.Node{busy}, admission.ReasonRequestQueued},
		"a step that disrupts nothing, behind": {"remediation/polish", "", remediations.ModeEnforce, []*corev1.Node{busy}, admission.ReasonNone},
		"a plan without a step to do, behind":  {"policy/empty", "", remediations.ModeEnforce, []*corev1.Node{busy}, admission.ReasonNone},
		"a policy that takes the node":         {"policy/eastern", "east", remediations.ModeEnforce, nil, admission.ReasonNone},
		"a policy that takes others":           {"policy/eastern", "west", remediations.ModeEnforce, nil, admission.ReasonRequestIdle},
		"a policy that is not there":           {"policy/gone", "", remediations.ModeEnforce, nil, admission.ReasonUnreadable},
		"a remediation that is not configured": {"remediation/replace", "", remediations.ModeEnforce, nil, admission.ReasonUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			config := requests.Config(c.mode)
			config.Registry = remediations.Registry{"polish": {Name: "polish", Verb: "polish", Once: true, Attempts: 1}}
			config.Provided["polish"] = true
			config.Policies = append(config.Policies,
				&remediations.Policy{Name: "eastern", Mode: c.mode, Plan: config.Policies[0].Plan, NodeSelector: east},
				&remediations.Policy{Name: "empty", Mode: c.mode})
			n := requests.Bare()
			n.Labels["zone"] = c.zone
			after := n.DeepCopy()
			after.Annotations[remediations.RequestKey] = c.request
			d := admission.Validate(config, &admission.Change{Old: n, New: after, User: "jane"}, func() []*corev1.Node { return append(c.others, n) }, requests.Now)
			require.True(t, d.Allowed)
			require.Equal(t, c.reason, d.Reason, "%+v", d)
			require.Equal(t, c.reason != admission.ReasonNone, len(d.Warnings) == 1, "%+v", d)
		})
	}
}
