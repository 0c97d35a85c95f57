package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/remediations/ledger"
)

// planted is what a malicious kubelet writes on its own Node: a leader's move that must be put
// back. Through it, other nodes would get the leader's key with the attacker's value.
func planted(id string, phase remediations.Phase) *remediations.Record {
	value, now := "evil", time.Now().UTC().Truncate(time.Second)
	r := &remediations.Record{
		V: 1, ID: id, Policy: leaderPolicy, Cause: remediations.Cause{Alert: "9f2c0e5b6d1a4c33"}, Location: "l0", Phase: phase,
		Step: remediations.StepRef{Name: "promote-leader", Attempt: 2}, Began: now, Since: now, Deadline: now.Add(time.Hour),
		Done:   remediations.Attempts{{Name: "promote-leader", Number: 2}},
		Moves:  []remediations.Move{{Location: "l0", From: "n2", To: "n5", Before: map[string]*string{"n2": &value, "n1": &value}}},
		Intent: &remediations.Intent{ID: id + "-0-2", At: now, UID: "u", Successor: "n5"}, Back: &now, Note: "planted",
	}
	if phase == remediations.PhasePending {
		r.Hold = &remediations.Hold{Reason: remediations.ReasonLeaderHeld, Message: "planted", Since: now}
	}
	return r
}

// TestAPlantedMoveIsNotPutBack: a move that a stranger wrote is not undone in observe mode, nor in
// enforce mode if the ledger does not know it. If the ledger knows it, enforce mode undoes it,
// which is the control.
func TestAPlantedMoveIsNotPutBack(t *testing.T) {
	for name, c := range map[string]struct {
		mode  remediations.Mode
		phase remediations.Phase
		known bool
		acts  bool
	}{
		"in observe mode":                           {mode: remediations.ModeObserve, phase: remediations.PhaseActing, known: true},
		"that waits, in observe mode":               {mode: remediations.ModeObserve, phase: remediations.PhasePending, known: true},
		"unknown to the ledger":                     {mode: remediations.ModeEnforce, phase: remediations.PhaseActing},
		"that waits and is unknown":                 {mode: remediations.ModeEnforce, phase: remediations.PhasePending},
		"control: the ledger knows of it":           {mode: remediations.ModeEnforce, phase: remediations.PhaseActing, known: true, acts: true},
		"control: it waits and the ledger knows it": {mode: remediations.ModeEnforce, phase: remediations.PhasePending, known: true, acts: true},
	} {
		t.Run(name, func(t *testing.T) {
			config := leaderConfig()
			leaderPolicyOf(config).Mode = c.mode
			inMesh(t, config, func(t *testing.T, w *world) {
				w.do(func() {
					for _, n := range []string{"n1", "n2"} {
						w.edit(n, func(n *corev1.Node) { delete(n.Annotations, admission.MeshLeaderKey) })
					}
					l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}
					if c.known {
						l.Moves = map[string][]ledger.Begun{"l0": {{Repair: "plantd", At: time.Now().UTC()}}}
					}
					w.ledger = l.Encode()
				})
				w.start()
				w.pass(20 * time.Second)
				before := w.keysOf("l0")
				w.do(func() {
					r := planted("plantd", c.phase)
					w.mesh.begun["l0"] = map[string]time.Time{r.ID: time.Now()}
					w.edit("n4", edit(remediations.LocationKey, r.Encode()))
				})
				w.pass(3 * time.Minute)
				if c.acts {
					require.NotEqual(t, before, w.keysOf("l0"))
					return
				}
				require.Equal(t, before, w.keysOf("l0"))
				require.Equal(t, remediations.PhaseExhausted, w.leaderRecordOn("n4").Phase, "a person must look")
			})
		})
	}
}
