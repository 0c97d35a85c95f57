package admission_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/test/admission/requests"
)

// TestDriversChangeByName: an entry of the configuration replaces only the shipped entry of its
// name.
func TestDriversChangeByName(t *testing.T) {
	const nvidia, network = "system:serviceaccount:gpu-operator:nvidia-driver", "system:serviceaccount:nvidia-network-operator:ofed-driver"
	require.True(t, admission.ShippedDrivers().Covers(nvidia), "the control")
	d := admission.ShippedDrivers().With(admission.Drivers{"nvidia-gpu-operator": {"system:serviceaccount:gpu:nvidia-driver"}, "mine": {"system:serviceaccount:a:b"}})
	require.False(t, d.Covers(nvidia))
	require.True(t, d.Covers("system:serviceaccount:gpu:nvidia-driver"))
	require.True(t, d.Covers("system:serviceaccount:a:b"))
	require.True(t, d.Covers(network))
	require.False(t, d.With(admission.Drivers{"nvidia-network-operator": {}}).Covers(network))
	require.True(t, admission.ShippedDrivers().Covers(nvidia), "the shipped list stays as it is")
}

// TestOwnKeysAreRemovedOnlyWhereTheRightIsKnown: no user can remove Drydock's own keys while the
// API server does not say who has the verb reset.
func TestOwnKeysAreRemovedOnlyWhereTheRightIsKnown(t *testing.T) {
	old := requests.Bare()
	requests.Put(old, requests.Record(remediations.PhaseExhausted))
	after := old.DeepCopy()
	delete(after.Annotations, remediations.NodeRepairKey)
	asked := ""
	change := func(allowed bool, err error) *admission.Change {
		return &admission.Change{Old: old, New: after, User: "jane", May: func(verb string) (bool, error) { asked = verb; return allowed, err }}
	}
	v := judge(remediations.ModeEnforce, change(false, errors.New("no answer in 1s")))
	require.Equal(t, admission.ReasonRightUnknown, v.Reason)
	require.Equal(t, "reset", asked)
	for _, part := range []string{remediations.NodeRepairKey + " is not removed from node n1", "jane", `the verb "reset" on repairs.drydock.dev`, "no answer in 1s"} {
		require.Contains(t, v.Message, part)
	}
	v = judge(remediations.ModeEnforce, change(false, nil))
	require.Contains(t, v.Message, remediations.NodeRepairKey+` is not removed from node n1: jane lacks the verb "reset" on repairs.drydock.dev`)
	require.True(t, judge(remediations.ModeEnforce, change(true, nil)).Allowed, "the control")
}

// TestOwnersMayOnlyGo: while a repair is in flight, a change keeps the Node's owners or removes all
// of them.
func TestOwnersMayOnlyGo(t *testing.T) {
	a, b := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "a", UID: "a"}, metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "b", UID: "b"}
	other := a
	other.UID = "c"
	for name, c := range map[string]struct {
		before, after []metav1.OwnerReference
		denied        bool
	}{
		"the same":           {[]metav1.OwnerReference{a, b}, []metav1.OwnerReference{a, b}, false},
		"none":               {nil, nil, false},
		"all removed":        {[]metav1.OwnerReference{a, b}, nil, false},
		"one more":           {[]metav1.OwnerReference{a}, []metav1.OwnerReference{a, b}, true},
		"one of two removed": {[]metav1.OwnerReference{a, b}, []metav1.OwnerReference{b}, true},
		"one changed":        {[]metav1.OwnerReference{a}, []metav1.OwnerReference{other}, true},
	} {
		t.Run(name, func(t *testing.T) {
			old := requests.Bare()
			requests.Put(old, requests.Record(remediations.PhaseVerifying))
			old.OwnerReferences = c.before
			after := old.DeepCopy()
			after.OwnerReferences = c.after
			v := judge(remediations.ModeEnforce, &admission.Change{Old: old, New: after, User: "jane"})
			require.Equal(t, c.denied, !v.Allowed)
			if c.denied {
				require.Equal(t, admission.ReasonOwnerReferences, v.Reason)
				require.Contains(t, v.Message, "changing the node's ownerReferences would collide with the repair")
			}
		})
	}
}

// TestUncordonOfAnExhaustedNodeSaysHowToEndItsRepair checks the warning.
func TestUncordonOfAnExhaustedNodeSaysHowToEndItsRepair(t *testing.T) {
	uncordon := func(phase remediations.Phase) admission.Decision {
		old := requests.Bare()
		requests.Put(old, requests.Record(phase))
		old.Spec = corev1.NodeSpec{Unschedulable: true}
		after := old.DeepCopy()
		after.Spec.Unschedulable = false
		return judge(remediations.ModeEnforce, &admission.Change{Old: old, New: after, User: "jane"})
	}
	v := uncordon(remediations.PhaseExhausted)
	require.True(t, v.Allowed)
	require.Equal(t, []string{"repair n7q4k2 of node n1 has run out of steps: the node takes pods again, and Drydock does not repair it until the repair is reset. " +
		"If the node is well: kubectl drydock reset n1, or kubectl annotate node n1 drydock.dev/reset=true"}, v.Warnings)
	require.Empty(t, uncordon(remediations.PhasePending).Warnings, "the control")
}
