package admission_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/test/admission/requests"
)

func judge(mode remediations.Mode, ch *admission.Change, others ...*corev1.Node) admission.Decision {
	return admission.Validate(requests.Config(mode), ch, func() []*corev1.Node { return append(others, requests.Bare()) }, requests.Now)
}

// TestAdmissionTable checks the rules against the table of requests and answers. The tests of the
// webhook and of the real API server use the same table.
func TestAdmissionTable(t *testing.T) {
	for _, c := range requests.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			v := judge(remediations.ModeEnforce, c.ChangeOf())
			want := c.Reason
			if want == "" {
				want = admission.ReasonNone
			}
			require.Equal(t, want, v.Reason, "%+v", v)
			require.Equal(t, !c.Denied, v.Allowed, "%+v", v)
			require.Equal(t, c.Warned, len(v.Warnings) > 0, "%+v", v)
			require.Equal(t, c.BreakGlass, v.BreakGlass, "%+v", v)
			require.Equal(t, c.Denied || c.BreakGlass, v.Message != "", "%+v", v)
			require.Contains(t, admission.Reasons, v.Reason)

			// Observe mode still denies Drydock's own keys, nodes' identities, and users without a
			// right. It allows the rest, with a warning if enforce mode would deny it.
			v = judge(remediations.ModeObserve, c.ChangeOf())
			always := always(c.Reason)
			require.Equal(t, c.Denied && always, !v.Allowed)
			if always {
				require.Equal(t, c.Reason, v.Reason)
				return
			}
			require.False(t, v.BreakGlass, "no rule was overridden")
			if c.Denied {
				require.NotEmpty(t, v.Warnings)
				require.Equal(t, want, v.Reason)
			}
		})
	}
}

// always reports whether a denial with that reason stands in observe mode, with break-glass and for
// exempt users.
func always(r admission.Reason) bool {
	return r == admission.ReasonNodeIdentity || r == admission.ReasonOwnKey || r == admission.ReasonRightMissing
}

// TestEveryAdmissionReasonIsInTheTable, except the reasons that need more than one Node.
func TestEveryAdmissionReasonIsInTheTable(t *testing.T) {
	seen := map[admission.Reason]bool{
		admission.ReasonNone: true, admission.ReasonEviction: true, admission.ReasonRequestQueued: true,
		admission.ReasonRightMissing: true, admission.ReasonRightUnknown: true, admission.ReasonRightUnchecked: true, // TestEachAnnotationNeedsItsRight
	}
	for _, c := range requests.Cases() {
		seen[c.Reason] = true
	}
	for _, r := range admission.Reasons {
		require.True(t, seen[r], "%s", r)
	}
}

// TestDenialSaysWhatToDo: the message names the repair, its step, since when and until when it
// runs, and the three ways out.
func TestDenialSaysWhatToDo(t *testing.T) {
	n := requests.Bare()
	requests.Put(n, requests.Record(remediations.PhaseVerifying))
	after := n.DeepCopy()
	after.Spec.Unschedulable = true
	v := judge(remediations.ModeEnforce, &admission.Change{Old: n, New: after, User: "jane"})
	require.Equal(t, "node n1 is under repair n7q4k2 by policy node-not-ready: reboot, attempt 1, is Verifying since "+
		"2026-11-20T21:00:00Z and ends by 2026-11-20T21:10:00Z at the latest; cordoning the node would collide with the repair. "+
		"To wait: kubectl drydock status -w, or kubectl get node n1 -L drydock.dev/phase -w. "+
		"To cancel the repair: kubectl drydock cancel n1, or kubectl annotate node n1 drydock.dev/cancel=n7q4k2. "+
		`To override this (break-glass): kubectl annotate node n1 drydock.dev/break-glass="<why>", and try again.`, v.Message)
}

// TestRequestSaysWhatItQueuesBehind: the warning names the limit that is reached, and the node that
// counts for it.
func TestRequestSaysWhatItQueuesBehind(t *testing.T) {
	busy := requests.Bare()
	busy.Name = "n2"
	requests.Put(busy, requests.Record(remediations.PhaseActing))
	n := requests.Bare()
	after := n.DeepCopy()
	after.Annotations[remediations.RequestKey] = "remediation/reboot"
	v := judge(remediations.ModeEnforce, &admission.Change{Old: n, New: after, User: "jane"}, busy)
	require.True(t, v.Allowed)
	require.Equal(t, admission.ReasonRequestQueued, v.Reason)
	require.Len(t, v.Warnings, 1)
	require.Contains(t, v.Warnings[0], "(n2); limits.concurrent is 1")

	v = judge(remediations.ModeEnforce, &admission.Change{Old: n, New: after, User: "jane"})
	require.Empty(t, v.Warnings, "the control")
}

// TestRequestOfAControlPlaneNodeSaysWhyItWaits checks the warning about a request that waits for
// etcd's quorum.
func TestRequestOfAControlPlaneNodeSaysWhyItWaits(t *testing.T) {
	n := requests.Bare()
	n.Labels["node-role.kubernetes.io/control-plane"] = ""
	after := n.DeepCopy()
	after.Annotations[remediations.RequestKey] = "remediation/reboot"
	other := n.DeepCopy()
	other.Name, other.Status.Conditions = "n2", []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	v := admission.Validate(requests.Config(remediations.ModeEnforce), &admission.Change{Old: n, New: after, User: "jane"}, func() []*corev1.Node { return []*corev1.Node{n, other} }, requests.Now)
	require.Equal(t, admission.ReasonRequestQueued, v.Reason)
	require.Contains(t, v.Warnings[0], "etcd needs")
}

func TestEvictionsFromANodeInFlight(t *testing.T) {
	c := requests.Config(remediations.ModeEnforce)
	for name, tc := range map[string]struct {
		phase      remediations.Phase
		step       string
		breakGlass bool
		by         requests.User
		denied     bool
	}{
		"in flight":                    {remediations.PhaseVerifying, "reboot", false, requests.Person, true},
		"pending":                      {remediations.PhasePending, "reboot", false, requests.Person, false},
		"nothing":                      {"", "", false, requests.Person, false},
		"break-glass set":              {remediations.PhaseVerifying, "reboot", true, requests.Person, false},
		"by Drydock":                   {remediations.PhaseVerifying, "reboot", false, requests.Drydock, false},
		"by one exempt":                {remediations.PhaseVerifying, "reboot", false, requests.Autoscale, false},
		"by the node's own kubelet":    {remediations.PhaseVerifying, "reboot", false, requests.Kubelet, false},
		"by whoever replaces it":       {remediations.PhaseVerifying, "replace", false, requests.Karpenter, false},
		"by a person while it is":      {remediations.PhaseVerifying, "replace", false, requests.Person, true},
		"by a driver's manager":        {remediations.PhaseVerifying, "reboot", false, requests.Driver, false},
		"by it while Acting":           {remediations.PhaseActing, "reboot", false, requests.Driver, true},
		"by Karpenter during a reboot": {remediations.PhaseVerifying, "reboot", false, requests.Karpenter, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := requests.Bare()
			if tc.phase != "" {
				r := requests.Record(tc.phase)
				if r.Step.Name = tc.step; r.Intent != nil {
					r.Intent.UID = requests.UID
				}
				requests.Put(n, r)
			}
			if tc.breakGlass {
				n.Annotations[remediations.BreakGlassKey] = "why"
			}
			ch := &admission.Change{Old: n, User: tc.by.Name, Groups: tc.by.Groups, Drydock: tc.by.Name == requests.Drydock.Name, Exempt: requests.Exempt.Covers(tc.by.Name, tc.by.Groups), Driver: admission.ShippedDrivers().Covers(tc.by.Name)}
			v := admission.ValidateEviction(c, ch)
			require.Equal(t, tc.denied, !v.Allowed)
			require.Equal(t, tc.breakGlass, v.BreakGlass)
			if tc.denied {
				require.Equal(t, admission.ReasonEviction, v.Reason)
				require.Contains(t, v.Message, "evicting a pod from the node would collide")
			}
			require.True(t, admission.ValidateEviction(requests.Config(remediations.ModeObserve), ch).Allowed)
		})
	}
}

// TestValidateChangesNothing: the Nodes come from caches and must not be modified.
func TestValidateChangesNothing(t *testing.T) {
	for _, c := range requests.Cases() {
		ch, same := c.ChangeOf(), c.ChangeOf()
		judge(remediations.ModeEnforce, ch)
		require.Equal(t, []*corev1.Node{same.Old, same.New}, []*corev1.Node{ch.Old, ch.New}, c.Name)
	}
}

// TestRepairOfAPersonsRequestIsInFlight: the policy of a requested repair is not in the
// configuration, so the mode of the configuration applies.
func TestRepairOfAPersonsRequestIsInFlight(t *testing.T) {
	n := requests.Bare()
	n.CreationTimestamp = metav1.NewTime(requests.Now.Add(-time.Hour))
	r := requests.Record(remediations.PhaseActing)
	r.Policy, r.Cause = "remediation/reboot", remediations.Cause{Request: "remediation/reboot"}
	requests.Put(n, r)
	v := judge(remediations.ModeEnforce, &admission.Change{Old: n, User: "jane"})
	require.False(t, v.Allowed)
	require.Contains(t, v.Message, "which a person requested, by policy remediation/reboot")

	// A repair stays in flight after its policy was removed.
	r.Policy, r.Cause = "gone", remediations.Cause{Alert: "9f2c0e5b6d1a4c33"}
	requests.Put(n, r)
	require.False(t, judge(remediations.ModeEnforce, &admission.Change{Old: n, User: "jane"}).Allowed)
}

// TestARequestThatAnAddedRemediationServesIsKnown: while the repair for one person's request is
// Pending, a second person's request is denied. This also holds if an added remediation carries out
// the first request.
func TestARequestThatAnAddedRemediationServesIsKnown(t *testing.T) {
	n := requests.Bare()
	r := requests.Record(remediations.PhasePending)
	r.Cause, r.Step.Name, r.Intent, r.Done = remediations.Cause{Request: "remediation/polish"}, "polish", nil, nil
	requests.Put(n, r)
	asked := n.DeepCopy()
	asked.Annotations[remediations.RequestKey] = "remediation/reboot"
	c := requests.Config(remediations.ModeEnforce)
	judge := func() admission.Decision {
		return admission.Validate(c, &admission.Change{Old: n, New: asked, User: "jane"}, func() []*corev1.Node { return []*corev1.Node{n} }, requests.Now)
	}
	require.NotEqual(t, admission.ReasonRequestPending, judge().Reason, "the control: nobody added it, so the record cannot be read")
	c.Registry = remediations.Registry{"polish": {Name: "polish", Verb: "polish", Once: true, Wait: time.Minute, Attempts: 1}}
	require.Equal(t, admission.ReasonRequestPending, judge().Reason)
}

// TestAnyRequest checks what holds for each decision, with random requests on random Nodes.
func TestAnyRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := requests.Generate(t)
		ch := c.ChangeOf()
		if c.Status && ch.Old != nil && ch.New != nil {
			ch.New.Spec = *ch.Old.Spec.DeepCopy() // like the API server before admission
		}
		v := judge(remediations.ModeEnforce, ch)
		require.Contains(t, admission.Reasons, v.Reason)
		require.Equal(t, v.Message != "", !v.Allowed || v.BreakGlass)

		if ch.Drydock {
			require.Equal(t, admission.Decision{Allowed: true, Reason: admission.ReasonNone}, v)
		}
		core := map[admission.Reason]bool{
			admission.ReasonNodeIdentity: true, admission.ReasonOwnKey: true, admission.ReasonRightMissing: true, admission.ReasonOwnKeyRemoved: true,
			admission.ReasonCordon: true, admission.ReasonDeletion: true, admission.ReasonOwnerReferences: true,
		}[v.Reason]
		byLabel := always(v.Reason) || (ch.Old != nil && remediations.Phase(ch.Old.Labels[remediations.PhaseLabel]).InFlight())
		require.Equal(t, c.HardCore(), !v.Allowed && core && byLabel, "%+v", v)

		// Break-glass allows everything except writes of Drydock's keys, nodes' own identities, and
		// annotations that need a right.
		if ch.Old != nil && !v.Allowed && !always(v.Reason) {
			for _, n := range []*corev1.Node{ch.Old, ch.New} {
				if n != nil {
					n.Annotations[remediations.BreakGlassKey] = "why"
				}
			}
			require.True(t, judge(remediations.ModeEnforce, ch).BreakGlass)
		}
		// Observe mode allows everything except the same.
		observed := judge(remediations.ModeObserve, ch)
		require.Equal(t, !v.Allowed && always(v.Reason), !observed.Allowed)
	})
}

// TestEachAnnotationNeedsItsRight: to set an annotation, a user needs its verb on the node. This
// holds in both modes, with and without break-glass, and for exempt users. If the right cannot be
// checked, only annotations that stop repairs are allowed.
func TestEachAnnotationNeedsItsRight(t *testing.T) {
	verbs := map[string]string{
		remediations.RequestKey: "request", remediations.ApproveKey: "approve", remediations.ResetKey: "reset",
		remediations.CancelKey: "cancel", remediations.BreakGlassKey: "break-glass",
	}
	values := map[string]string{remediations.RequestKey: "remediation/reboot", remediations.ApproveKey: requests.ID, remediations.ResetKey: "true", remediations.CancelKey: requests.ID, remediations.BreakGlassKey: "why"}
	stops := map[string]bool{remediations.CancelKey: true, remediations.BreakGlassKey: true}
	for _, mode := range []remediations.Mode{remediations.ModeEnforce, remediations.ModeObserve} {
		for key, verb := range verbs {
			for _, who := range []requests.User{requests.Person, requests.GPU} {
				asked := ""
				ask := func(allowed bool, err error) func(string) (bool, error) {
					return func(v string) (bool, error) { asked = v; return allowed, err }
				}
				change := func(may func(string) (bool, error)) *admission.Change {
					n := requests.Bare()
					after := n.DeepCopy()
					after.Annotations[key] = values[key]
					return &admission.Change{Old: n, New: after, User: who.Name, Groups: who.Groups, Exempt: requests.Exempt.Covers(who.Name, who.Groups), May: may}
				}
				v := judge(mode, change(ask(false, nil)))
				require.False(t, v.Allowed, key)
				require.Equal(t, admission.ReasonRightMissing, v.Reason)
				require.Equal(t, verb, asked)
				for _, part := range []string{key, "node n1", who.Name, `the verb "` + verb + `" on repairs.drydock.dev`, "ClusterRole RELEASE-operator"} {
					require.Contains(t, v.Message, part)
				}
				broken := change(ask(false, nil))
				broken.Old.Annotations[remediations.BreakGlassKey] = "before"
				broken.New.Annotations[remediations.BreakGlassKey] = "before"
				broken.New.Annotations[key] = values[key]
				require.False(t, judge(mode, broken).Allowed, "break-glass gives no one a right")

				v = judge(mode, change(ask(false, errors.New("no answer in 1s"))))
				require.Equal(t, stops[key], v.Allowed, key)
				if v.Allowed {
					require.Equal(t, admission.ReasonRightUnchecked, v.Reason)
					require.Contains(t, v.Warnings[0], "no answer in 1s")
				} else {
					require.Equal(t, admission.ReasonRightUnknown, v.Reason)
					require.Contains(t, v.Message, "no answer in 1s")
				}

				require.True(t, judge(mode, change(ask(true, nil))).Allowed, "the control")
				require.True(t, judge(mode, change(nil)).Allowed, "rights are off")
			}
		}
	}
	require.Equal(t, []string{"request", "approve", "reset", "cancel", "break-glass"}, admission.RightVerbs())
}

// TestStoppingNeedsNoRight: stopping repairs, or removing a person's annotation, needs only the
// right to patch the Node.
func TestStoppingNeedsNoRight(t *testing.T) {
	never := func(verb string) (bool, error) { t.Errorf("asked for %s", verb); return false, nil }
	n := requests.Bare()
	for _, key := range []string{remediations.RequestKey, remediations.ApproveKey, remediations.ResetKey, remediations.CancelKey, remediations.BreakGlassKey, remediations.PauseKey} {
		n.Annotations[key] = "before"
	}
	for name, change := range map[string]func(*corev1.Node){
		"a pause":              func(n *corev1.Node) { n.Annotations[remediations.PauseKey] = "true" },
		"the end of a pause":   func(n *corev1.Node) { delete(n.Annotations, remediations.PauseKey) },
		"an exclusion":         func(n *corev1.Node) { n.Labels[remediations.ExcludeLabel] = "true" },
		"a request taken back": func(n *corev1.Node) { delete(n.Annotations, remediations.RequestKey) },
		"break-glass removed":  func(n *corev1.Node) { delete(n.Annotations, remediations.BreakGlassKey) },
		"another annotation":   func(n *corev1.Node) { n.Annotations["example.com/rack"] = "r9" },
		"a cordon":             func(n *corev1.Node) { n.Spec.Unschedulable = true },
	} {
		after := n.DeepCopy()
		change(after)
		require.True(t, judge(remediations.ModeEnforce, &admission.Change{Old: n, New: after, User: "jane", May: never}).Allowed, name)
	}
	judge(remediations.ModeEnforce, &admission.Change{Old: n, User: "jane", May: never})
}
