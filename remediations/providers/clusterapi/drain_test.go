package clusterapi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestPodsAreGivenUpBeforeTheRequest if the policy says so, with each form of the request, and
// never otherwise. An annotation that a person set stays.
func TestPodsAreGivenUpBeforeTheRequest(t *testing.T) {
	for _, of := range []way{annotate, mark, remove} {
		t.Run(string(of), func(t *testing.T) {
			w := newWorld(t)
			if of == annotate {
				w.check("workers", nil)
			}
			r := w.replacer(func(o *Options) { o.WithoutHealthCheck = deletes(of == remove) })
			first, last := node1, node10
			first.GivesUpPods = true
			for _, each := range []struct {
				name  string
				asked bool
			}{{"one", true}, {"ten", false}} {
				machine := last
				if each.asked {
					machine = first
				}
				outcome, err := w.ask(r, machine)
				require.NoError(t, err)
				require.Equal(t, remediations.CallAccepted, outcome)
				if of == remove && !each.asked {
					continue
				}
				value, there := w.Get("Machine", each.name).GetAnnotations()[noDrainKey]
				require.Equal(t, each.asked, there)
				if each.asked {
					require.Equal(t, first.Attempt, value)
				}
				if of == remove { // the MachineSet makes no new Machine here, and would not replace another one
					w.Patch("MachineSet", "pool", m{"spec": m{"replicas": 3}})
				}
			}
		})
	}
}

// TestTheDrainIsRequestedAgainWhenTheRepairHasEnded: Drydock's own mark is removed if the request
// had no effect. A Machine that is being deleted keeps it.
func TestTheDrainIsRequestedAgainWhenTheRepairHasEnded(t *testing.T) {
	t.Parallel()
	w, s, machine := shared(t)
	ctx := t.Context()
	annotated := func() (string, bool) {
		value, there := w.Get("Machine", "one").GetAnnotations()[noDrainKey]
		return value, there
	}
	replacer := Replacer{Client: s.Client}
	machine.GivesUpPods = true
	machine.Before = replacer.Survey(ctx, machine).Before
	withhold := func() error { return remediations.Withhold(remediations.ReasonCallWithheld, "a test withholds it") }
	act := func() {
		outcome, err := replacer.Act(ctx, machine, withhold)
		require.ErrorContains(t, err, "a test withholds it")
		require.Equal(t, remediations.CallRefused, outcome)
	}
	act()
	value, _ := annotated()
	require.Equal(t, machine.Attempt, value)
	require.NotContains(t, w.Get("Machine", "one").GetAnnotations(), remediateKey)
	recorded(t, machine.Node, phase(remediations.PhaseVerifying, true))
	require.NoError(t, s.GiveBack(ctx))
	_, there := annotated()
	require.True(t, there, "the repair is under way")
	recorded(t, machine.Node, nil)
	require.NoError(t, s.GiveBack(ctx))
	_, there = annotated()
	require.False(t, there)
	require.NotContains(t, w.Get("Machine", "one").GetLabels(), keptLabel)

	w.Patch("Machine", "one", m{"metadata": m{"annotations": m{noDrainKey: "by hand"}}})
	act()
	require.NoError(t, s.GiveBack(ctx))
	value, _ = annotated()
	require.Equal(t, "by hand", value)

	w.Patch("Machine", "one", m{"metadata": m{"annotations": m{noDrainKey: nil}}})
	act()
	w.going("Machine", "one")
	require.NoError(t, s.GiveBack(ctx))
	value, _ = annotated()
	require.Equal(t, machine.Attempt, value, "a drain would begin again")
}
