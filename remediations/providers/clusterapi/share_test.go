package clusterapi

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// shared is a world whose Machine one has a Node of its own name, and a MachineHealthCheck that
// selects it.
func shared(t *testing.T) (*world, Share, engine.Machine) {
	t.Helper()
	w := newWorld(t)
	node := "shared-" + w.Name
	w.Patch("Machine", "one", m{"status": m{"nodeRef": m{"name": node}}}, "status")
	w.Node(node, "lab://1", nil)
	w.check("checked", nil)
	return w, Share{Client: w.replacer(nil).Client}, engine.Machine{Node: node, ProviderID: "lab://1", Attempt: "abcdef-0-1"}
}

// recorded puts the record on the Node; nil: no record.
func recorded(t *testing.T, node string, r *remediations.Record) {
	t.Helper()
	value := "null"
	if r != nil {
		value = r.Encode()
	}
	change := m{"metadata": m{"annotations": m{remediations.NodeRepairKey: value}}}
	if r == nil {
		change = m{"metadata": m{"annotations": m{remediations.NodeRepairKey: nil}}}
	}
	n, err := lab.Shared(t).Client().CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(remediations.EncodeJSON(change)), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, remediations.ReadJournal(n).Malformed)
}

// phase is a record in that phase.
func phase(p remediations.Phase, intent bool) *remediations.Record {
	at := metav1.Now().UTC()
	r := &remediations.Record{
		V: remediations.RecordVersion, ID: "abcdef", Policy: "p", Cause: remediations.Cause{Alert: "f"}, Phase: p,
		Step: remediations.StepRef{Name: "reboot", Attempt: 1}, Began: at, Since: at, Deadline: at,
	}
	if intent {
		r.Intent, r.Done = &remediations.Intent{ID: "abcdef-0-1", At: at}, remediations.Attempts{{Name: "reboot", Number: 1}}
	}
	return r
}

// TestTheMachineHealthCheckIsKeptOffDuringARepair, and looks at the Machine again after it, however
// the repair ended and whichever client wrote the annotation.
func TestTheMachineHealthCheckIsKeptOffDuringARepair(t *testing.T) {
	t.Parallel()
	w, s, machine := shared(t)
	ctx := t.Context()
	skip := func() (string, bool) {
		value, there := w.Get("Machine", "one").GetAnnotations()[skipKey]
		return value, there
	}
	require.NoError(t, s.Free(ctx, machine, "redfish"))
	require.NoError(t, s.Take(ctx, machine, "clusterAPI"))
	_, there := skip()
	require.False(t, there, "Cluster API's own step needs it")

	recorded(t, machine.Node, phase(remediations.PhaseActing, true))
	require.NoError(t, s.Take(ctx, machine, "redfish"))
	value, _ := skip()
	require.Equal(t, "abcdef-0-1", value)
	require.Empty(t, w.Get("Machine", "ten").GetAnnotations())
	for _, under := range []*remediations.Record{phase(remediations.PhaseActing, true), phase(remediations.PhaseVerifying, true), phase(remediations.PhasePending, true)} {
		recorded(t, machine.Node, under)
		require.NoError(t, s.GiveBack(ctx))
		_, there = skip()
		require.True(t, there, under.Phase)
	}
	for _, over := range []*remediations.Record{nil, phase(remediations.PhaseExhausted, true), phase(remediations.PhasePending, false)} {
		require.NoError(t, s.Take(ctx, machine, ""))
		recorded(t, machine.Node, over)
		require.NoError(t, s.GiveBack(ctx))
		_, there = skip()
		require.False(t, there)
		require.NotContains(t, w.Get("Machine", "one").GetLabels(), keptLabel)
	}
}

// TestAPersonsSkipRemediationStays: one that was there before, and one that a person has changed
// since.
func TestAPersonsSkipRemediationStays(t *testing.T) {
	t.Parallel()
	w, s, machine := shared(t)
	ctx := t.Context()
	w.Patch("Machine", "one", m{"metadata": m{"annotations": m{skipKey: "by hand"}}})
	require.NoError(t, s.Take(ctx, machine, "redfish"))
	require.NoError(t, s.GiveBack(ctx))
	require.Equal(t, "by hand", w.Get("Machine", "one").GetAnnotations()[skipKey])

	w.Patch("Machine", "one", m{"metadata": m{"annotations": m{skipKey: nil}}})
	require.NoError(t, s.Take(ctx, machine, "redfish"))
	require.Equal(t, "abcdef-0-1", w.Get("Machine", "one").GetAnnotations()[skipKey])
	w.Patch("Machine", "one", m{"metadata": m{"annotations": m{skipKey: "mine now"}}})
	require.NoError(t, s.GiveBack(ctx))
	require.Equal(t, "mine now", w.Get("Machine", "one").GetAnnotations()[skipKey])
	require.NotContains(t, w.Get("Machine", "one").GetLabels(), keptLabel)
}

// TestAReplacementAfterAnotherStepLetsTheMachineHealthCheckLook: Drydock's own annotation does not
// hold it, and is removed with the request; a person's annotation holds.
func TestAReplacementAfterAnotherStepLetsTheMachineHealthCheckLook(t *testing.T) {
	t.Parallel()
	w, s, machine := shared(t)
	ctx := t.Context()
	require.NoError(t, s.Take(ctx, machine, "redfish"))
	replacer := Replacer{Client: s.Client}
	survey := replacer.Survey(ctx, machine)
	require.Empty(t, survey.Trouble)
	w.Patch("Machine", "one", m{"metadata": m{"annotations": m{skipKey: "by hand"}}})
	require.Contains(t, replacer.Survey(ctx, machine).Trouble, skipKey)
	w.Patch("Machine", "one", m{"metadata": m{"annotations": m{skipKey: nil}}})
	require.NoError(t, s.Take(ctx, machine, "redfish"))

	machine.Before, machine.Attempt = survey.Before, "abcdef-1-1"
	outcome, err := replacer.Act(ctx, machine, func() error { return nil })
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	one := w.Get("Machine", "one")
	require.Equal(t, "abcdef-1-1", one.GetAnnotations()[remediateKey])
	require.NotContains(t, one.GetAnnotations(), skipKey)
	require.Contains(t, one.GetLabels(), keptLabel, "it finds the Machine again if nothing comes of the request")
}

// TestAReplacementThatNeverBeganIsWithdrawn when the repair has ended, by annotation and by
// conditions. Until then the request stays, and what others have written stays for ever.
func TestAReplacementThatNeverBeganIsWithdrawn(t *testing.T) {
	t.Parallel()
	for _, of := range []way{annotate, mark} {
		t.Run(string(of), func(t *testing.T) {
			t.Parallel()
			w, s, machine := shared(t)
			if of == mark {
				w.Delete("MachineHealthCheck", "checked")
			}
			ctx, r := t.Context(), Replacer{Client: s.Client}
			ask := func() {
				machine.Before = r.Survey(ctx, machine).Before
				recorded(t, machine.Node, phase(remediations.PhaseActing, true))
				require.NoError(t, s.Take(ctx, machine, itself))
				outcome, err := r.Act(ctx, machine, yes)
				require.NoError(t, err)
				require.Equal(t, remediations.CallAccepted, outcome)
			}
			asked := []string{string(w.Get("Machine", "one").GetUID())}
			for _, over := range []*remediations.Record{nil, phase(remediations.PhaseExhausted, true)} {
				ask()
				for _, under := range []*remediations.Record{phase(remediations.PhaseActing, true), phase(remediations.PhaseVerifying, true), phase(remediations.PhasePending, true)} {
					recorded(t, machine.Node, under)
					require.NoError(t, s.GiveBack(ctx))
					require.Equal(t, asked, w.asked(), "the repair is under way: %s", under.Phase)
				}
				recorded(t, machine.Node, over)
				require.NoError(t, s.GiveBack(ctx))
				require.Empty(t, w.asked())
				one := w.Get("Machine", "one")
				require.NotContains(t, one.GetLabels(), keptLabel)
				require.NotContains(t, one.GetAnnotations(), remediateKey)
				said, _, _ := unstructured.NestedSlice(one.Object, "status", "conditions")
				require.Equal(t, []any{condition(nodeHealthy, "True", "NodeHealthy", "")}, said, "the others' conditions stay")
				require.Empty(t, r.Survey(ctx, machine).Trouble, "it may be asked for again")
			}

			ask()
			w.Patch("Machine", "one", m{"metadata": m{"finalizers": []any{"drydock.dev/test"}}})
			require.NoError(t, w.Of("Machine").Delete(ctx, "one", metav1.DeleteOptions{}))
			recorded(t, machine.Node, nil)
			was := w.Get("Machine", "one")
			require.NoError(t, s.GiveBack(ctx))
			require.Equal(t, was, w.Get("Machine", "one"), "the replacement has begun")
		})
	}
}

// TestARequestStaysWhileTheNodeIsGone: the repair continues without its Node, and the Machine must
// be replaced.
func TestARequestStaysWhileTheNodeIsGone(t *testing.T) {
	t.Parallel()
	w, s, machine := shared(t)
	ctx, r := t.Context(), Replacer{Client: s.Client}
	machine.Before = r.Survey(ctx, machine).Before
	_, err := r.Act(ctx, machine, yes)
	require.NoError(t, err)
	require.NoError(t, lab.Shared(t).Client().CoreV1().Nodes().Delete(ctx, machine.Node, metav1.DeleteOptions{}))
	require.NoError(t, s.GiveBack(ctx))
	require.Equal(t, machine.Attempt, w.Get("Machine", "one").GetAnnotations()[remediateKey])
	w.Node(machine.Node, "lab://1", nil)
	require.NoError(t, s.GiveBack(ctx))
	require.Empty(t, w.asked(), "the control: the Node is back, and no repair of it is under way")
}

// TestAnothersRequestIsNotWithdrawn: a person's annotation, and a MachineHealthCheck's condition of
// the Machine.
func TestAnothersRequestIsNotWithdrawn(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]func(*world){
		"annotation": annotation("Machine", "one", remediateKey, "anna"),
		"conditions": machineSays(condition(healthy, "False", "UnhealthyNode", "Ready is False"), condition(ownerRemedied, "False", "WaitingForRemediation", "")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s, machine := shared(t)
			require.NoError(t, s.Take(t.Context(), machine, "redfish"))
			others(w)
			require.NoError(t, s.GiveBack(t.Context()))
			require.Len(t, w.asked(), 1)
			require.NotContains(t, w.Get("Machine", "one").GetLabels(), keptLabel, "the control: the Machine was found")
		})
	}
}

// TestWhatClusterAPIRepairsIsLeftToIt, and is reported before the intent. A Node without a Machine,
// or without a MachineHealthCheck, is left to no other system.
func TestWhatClusterAPIRepairsIsLeftToIt(t *testing.T) {
	t.Parallel()
	w, s, machine := shared(t)
	ctx := t.Context()
	require.NoError(t, s.Free(ctx, machine, "redfish"))
	w.Patch("Machine", "one", m{"status": m{"conditions": []any{m{
		"type": ownerRemedied, "status": "False", "reason": "WaitingForRemediation", "message": "", "lastTransitionTime": "2026-03-04T12:00:00Z",
	}}}}, "status")
	for _, err := range []error{s.Free(ctx, machine, "redfish"), s.Take(ctx, machine, "redfish")} {
		require.ErrorIs(t, err, engine.ErrTaken)
		require.ErrorContains(t, err, "is already being replaced")
	}
	machineSays(condition("Updating", "True", "InPlaceUpdating", ""))(w)
	for _, err := range []error{s.Free(ctx, machine, "redfish"), s.Take(ctx, machine, "redfish")} {
		require.ErrorIs(t, err, engine.ErrTaken)
		require.ErrorContains(t, err, "is being updated in place")
	}
	require.NoError(t, s.Free(ctx, machine, "clusterAPI"), "its own step says so itself")
	require.NotContains(t, w.Get("Machine", "one").GetAnnotations(), skipKey)

	stranger := engine.Machine{Node: "no-machine", ProviderID: "civo://1", Attempt: "abcdef-0-1"}
	require.NoError(t, s.Free(ctx, stranger, "civo"))
	require.NoError(t, s.Take(ctx, stranger, "civo"))

	require.NoError(t, w.Of("MachineHealthCheck").Delete(ctx, "checked", metav1.DeleteOptions{}))
	ten := engine.Machine{Node: "node-10", ProviderID: "lab://10", Attempt: "abcdef-0-1"}
	require.NoError(t, s.Take(ctx, ten, "redfish"))
	require.NotContains(t, w.Get("Machine", "ten").GetAnnotations(), skipKey, "there is nobody to keep off")
	two := engine.Machine{Node: "node-10", ProviderID: "lab://1"}
	require.ErrorContains(t, s.Free(ctx, two, "redfish"), "could both be the Node's")
}
