package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// plantedSidecar is a record in flight of a pod's sidecar, as any client that may patch Nodes can
// write it.
func plantedSidecar(name string, issued, deadline time.Time) *remediations.Record {
	pod := remediations.Pod{Namespace: "sei", Name: name, UID: "pod-0"}
	return &remediations.Record{
		V: 1, ID: "plants", Policy: sidecarPolicy, Cause: remediations.Cause{Alert: "9f2c0e5b6d1a4c33"}, Pod: &pod, Phase: remediations.PhaseVerifying,
		Step: remediations.StepRef{Name: "mark-ready", Attempt: 1}, Done: remediations.Attempts{{Name: "mark-ready", Number: 1}}, Began: issued, Since: issued, Deadline: deadline,
		Intent: &remediations.Intent{ID: "plants-0-1", At: issued, UID: "pod-0", Task: "task", Outcome: remediations.CallAccepted},
	}
}

// TestSidecarsPlaceIsNotKeptForEver: a sidecar's repair that nothing ends takes its place under
// limits.sidecars.concurrent only for as long as its step may take.
func TestSidecarsPlaceIsNotKeptForEver(t *testing.T) {
	year9999 := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	plant := func(issued, deadline func() time.Time) func(w *world) {
		return func(w *world) {
			w.pod("none").uid = "pod-0"
			r := plantedSidecar("none", issued(), deadline())
			w.gates.tasks[r.Intent.Task] = r.Intent.ID
			w.edit("n5", edit(podKey("none"), r.Encode()))
		}
	}
	now := func() time.Time { return time.Now().UTC().Truncate(time.Second) }
	never := func() time.Time { return year9999 }
	for name, c := range map[string]struct {
		spoil   func(w *world)
		planted bool
		// ends is the repair's phase after that. If the Node has an unreadable record, the repair
		// makes no further step.
		ends remediations.Phase
	}{
		"a person spoils the record of its node": {spoil: func(w *world) { w.edit("n5", edit(remediations.NodeRepairKey, "{}")) }, ends: remediations.PhasePending},
		"planted, with a deadline in 9999":       {spoil: plant(now, never), planted: true, ends: remediations.PhaseExhausted},
		"planted, issued in 9999":                {spoil: plant(never, never), planted: true, ends: remediations.PhaseExhausted},
		"the control":                            {spoil: func(*world) {}, ends: remediations.PhaseExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			conf := sidecarConfig()
			conf.Limits.Sidecars = 1
			inGates(t, conf, 1, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.pod("none").wedged, w.pod("none").quiet = true, c.planted
					w.pod("none").close()
				})
				require.Equal(t, !c.planted, w.until(time.Minute, func() bool { return w.sidecarsInFlight() == 1 }))
				w.do(func() { c.spoil(w); w.closeOn("n0") })
				w.pass(10 * time.Second)
				require.True(t, c.planted || !at(w, func() bool { return w.pod(podName(0)).open }), "the only place is taken")
				w.pass(12 * time.Minute)
				require.True(t, at(w, func() bool { return w.pod(podName(0)).open }), "and free again")
				w.do(func() {
					for k, r := range w.sidecarRecords() {
						require.Equal(t, c.ends, r.Phase, "%s %s", k, r.Encode())
					}
				})
			})
		})
	}
}

// TestPlantedMoveKeepsNoPlace: a client wrote a leader's repair while Drydock only observed. The
// repair takes the place of another location's, and of the nodes that it names, for as long as its
// step may take. Then it ends.
func TestPlantedMoveKeepsNoPlace(t *testing.T) {
	year9999 := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		plant            bool
		issued, deadline time.Time
	}{
		"with a deadline in 9999": {plant: true, deadline: year9999},
		"issued in 9999":          {plant: true, issued: year9999, deadline: year9999},
		"the control":             {},
	} {
		t.Run(name, func(t *testing.T) {
			inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
				w.do(func() {
					if !c.plant {
						return
					}
					r := planted("plantd", remediations.PhaseVerifying)
					r.Back, r.Note, r.Intent.Outcome = nil, "", remediations.CallAccepted
					r.Deadline = c.deadline
					if !c.issued.IsZero() {
						r.Since, r.Intent.At = c.issued, c.issued
					}
					w.mesh.places["l0"].hidden = true // otherwise it would appear healthy
					w.edit("n2", func(n *corev1.Node) {
						n.Annotations[remediations.LocationKey] = r.Encode()
						n.Labels[remediations.PhaseLabel] = string(r.Phase)
					})
				})
				w.start()
				w.pass(30 * time.Minute)
				w.do(func() { w.darken("n3", true) })
				w.pass(5 * time.Minute)
				require.Equal(t, []string{"n3>n4"}, w.moves(), "the leader of another location is moved")
				w.do(func() { w.ail("n2", 1) })
				w.pass(10 * time.Minute)
				t.Log(w.leaderRecordOn("n2").Encode(), w.recordOf("n2"), w.nodeOf("n2").Annotations, w.nodeOf("n2").Labels)
				require.Equal(t, 1, w.callCount(), "the node itself is repaired")
			})
		})
	}
}
