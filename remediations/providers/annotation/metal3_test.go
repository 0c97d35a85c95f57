package annotation

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// TestAHostIsAskedToRebootOnce: hard, or soft if the plan says so, together with the attempt's ID.
func TestAHostIsAskedToRebootOnce(t *testing.T) {
	t.Parallel()
	for want, soft := range map[string]bool{`{"mode":"hard"}`: false, `{"mode":"soft"}`: true} {
		w := newWorld(t)
		r, machine := w.rebooter(nil), w.a
		machine.Soft = soft
		require.Empty(t, r.Survey(t.Context(), machine).Trouble)
		require.Empty(t, w.asked())
		outcome, err := r.Act(t.Context(), machine, yes)
		require.NoError(t, err)
		require.Equal(t, remediations.CallAccepted, outcome)
		require.Equal(t, []string{"host-a"}, w.asked())
		a := w.Get("BareMetalHost", "host-a").GetAnnotations()
		require.Equal(t, []string{want, machine.Attempt, machine.Node}, []string{a[rebootKey], a[remediations.AttemptKey], a[nodeKey]})
		outcome, err = r.Act(t.Context(), machine, yes)
		require.Equal(t, remediations.CallRefused, outcome)
		require.ErrorContains(t, err, `is already being rebooted or kept off (annotation "reboot.metal3.io")`)
	}
}

// TestWhatStandsAgainstAReboot is named before the intent, and refused at the call.
func TestWhatStandsAgainstAReboot(t *testing.T) {
	t.Parallel()
	says := func(status m) func(*world) {
		return func(w *world) { w.Patch("BareMetalHost", "host-a", m{"status": status}, "status") }
	}
	annotated := func(key string) func(*world) { return func(w *world) { w.annotate(key, "") } }
	for want, change := range map[string]func(*world){
		`(annotation "reboot.metal3.io")`:                             annotated(rebootKey),
		`(annotation "reboot.metal3.io/maintenance")`:                 annotated("reboot.metal3.io/maintenance"),
		"has the annotation baremetalhost.metal3.io/paused":           annotated(pausedKey),
		"has the annotation baremetalhost.metal3.io/detached":         annotated(detachedKey),
		`is in the state "deprovisioning"`:                            says(m{"provisioning": m{"state": "deprovisioning"}}),
		"is switched off on purpose":                                  func(w *world) { w.Patch("BareMetalHost", "host-a", m{"spec": m{"online": false}}) },
		`has the error "power management error": "no route to BMC"`:   says(m{"errorType": "power management error", "errorMessage": "no route to BMC"}),
		`is being serviced (status.operationalStatus is "servicing")`: says(m{"operationalStatus": "servicing"}),
		`Machine machine-a is being updated in place: Updating is True, InPlaceUpdating`: func(w *world) {
			w.Patch("Machine", "machine-a", m{"status": m{"conditions": []any{m{"type": "Updating", "status": "True", "reason": "InPlaceUpdating", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}}, "status")
		},
		"is off according to the baremetal-operator":                 says(m{"poweredOn": false}),
		`Machine machine-a has the infrastructure "Metal3Machine x"`: func(w *world) { w.Patch("Machine", "machine-a", m{"spec": m{"infrastructureRef": m{"name": "x"}}}) },
		"no Machine in namespace":                                    func(w *world) { w.Delete("Machine", "machine-a") },
		`has the consumer "Metal3Machine m3m-x"`:                     func(w *world) { w.Patch("BareMetalHost", "host-a", m{"spec": m{"consumerRef": m{"name": "m3m-x"}}}) },
	} {
		w := newWorld(t)
		r := w.rebooter(nil)
		require.Empty(t, r.Survey(t.Context(), w.a).Trouble, "the control")
		change(w)
		said := r.Survey(t.Context(), w.a)
		require.Contains(t, said.Trouble, want)
		require.False(t, said.Fleetwide)
		outcome, err := r.Act(t.Context(), w.a, yes)
		require.Equal(t, remediations.CallRefused, outcome)
		require.ErrorContains(t, err, want)
		require.Empty(t, w.Get("BareMetalHost", "host-a").GetAnnotations()[remediations.AttemptKey])
	}
	w := newWorld(t)
	for _, id := range []string{"", "metal3://2b0d6ac2-5e8f-4a3e-b8a7-0c3a5d1f0e11", "metal3://elsewhere/host-a/m3m-a", "civo://1"} {
		machine := w.a
		machine.ProviderID = id
		require.Contains(t, w.rebooter(nil).Survey(t.Context(), machine).Trouble, "instead of metal3://"+w.Name+"/HOST/METAL3MACHINE")
	}
	said := w.rebooter(lab.Shared(t).ConfigAs("somebody")).Survey(t.Context(), w.a)
	require.Contains(t, said.Trouble, "docs/providers/annotation.md lists the rights that Drydock needs")
	require.True(t, said.Fleetwide)
}

// TestAChangeSinceTheLookIsNotWrittenOver: a person's annotation comes between the look and the
// call.
func TestAChangeSinceTheLookIsNotWrittenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outcome, err := w.rebooter(nil).Act(t.Context(), w.a, func() error {
		w.annotate("reboot.metal3.io/maintenance", "by hand")
		return nil
	})
	require.Equal(t, remediations.CallRefused, outcome, "%v", err)
	require.Empty(t, w.asked())
	require.NotContains(t, w.Get("BareMetalHost", "host-a").GetAnnotations(), remediations.AttemptKey)
}

// TestAnEndedRepairRemovesItsAnnotations, also if the operator never began; what other clients
// wrote stays.
func TestAnEndedRepairRemovesItsAnnotations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.rebooter(nil)
	e := Ender{Client: r.Client}
	keys := func() string {
		var out []string
		for _, key := range []string{rebootKey, remediations.AttemptKey, nodeKey} {
			if _, there := w.Get("BareMetalHost", "host-a").GetAnnotations()[key]; there {
				out = append(out, key)
			}
		}
		return strings.Join(out, " ")
	}
	ask := func() {
		outcome, err := r.Act(t.Context(), w.a, yes)
		require.NoError(t, err)
		require.Equal(t, remediations.CallAccepted, outcome)
	}
	all := rebootKey + " " + remediations.AttemptKey + " " + nodeKey
	ask()
	for _, under := range []remediations.Phase{remediations.PhaseActing, remediations.PhaseVerifying} {
		record(w.Space, w.a, under)
		require.NoError(t, e.End(t.Context()))
		require.Equal(t, all, keys(), under)
	}
	record(w.Space, w.a, remediations.PhaseExhausted)
	require.NoError(t, e.End(t.Context()))
	require.Empty(t, keys(), "the operator never began")
	require.NotContains(t, w.Get("BareMetalHost", "host-a").GetLabels(), askedLabel)

	ask()
	w.annotate(rebootKey, nil) // as the operator does
	w.annotate(rebootKey, "by hand")
	record(w.Space, w.a, "")
	require.NoError(t, e.End(t.Context()))
	require.Equal(t, rebootKey, keys())
	w.Patch("BareMetalHost", "host-a", m{"metadata": m{"labels": m{askedLabel: "true"}, "annotations": m{remediations.AttemptKey: "mine"}}})
	require.NoError(t, e.End(t.Context()))
	require.Equal(t, rebootKey+" "+remediations.AttemptKey, keys(), "what a person calls Drydock's is not")
}
