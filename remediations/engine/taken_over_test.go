package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// left is what an engine of another version had written when it died in this story, before or after
// this step. Did is its last action. Nodes has the annotations of each Node.
type left struct {
	Story  string
	Step   int
	After  bool
	Did    string
	Nodes  map[string]map[string]string
	Ledger map[string]string
}

// TestWhatAnotherVersionWroteIsTakenOver: a repair that an upgrade interrupts ends as it would have
// ended, and no call is made twice. Commit 7c8b93d9 wrote the records, histories and ledgers in
// testdata/taken-over.json, before a record was bound to its machine. There is one for each phase,
// step and attempt of each story.
func TestWhatAnotherVersionWroteIsTakenOver(t *testing.T) {
	raw, err := os.ReadFile("testdata/taken-over.json")
	require.NoError(t, err)
	var all []left
	require.NoError(t, json.Unmarshal(raw, &all))
	phases := map[remediations.Phase]int{}
	for _, l := range all {
		s, ok := stories()[l.Story]
		require.True(t, ok, l.Story)
		for _, keys := range l.Nodes {
			for key, text := range keys {
				if r, err := modelRegistry.DecodeRecordOf(key, text); err == nil {
					phases[r.Phase]++
				}
			}
		}
		t.Run(fmt.Sprintf("%s, step %d %s, after it %t", l.Story, l.Step, l.Did, l.After), func(t *testing.T) {
			t.Parallel()
			s.meanwhile = func(t *testing.T, w *world) {
				w.do(func() {
					log := w.instances[0].log
					require.Equal(t, l.Did, log[len(log)-1], "this version has come to another step, so what the other one wrote does not fit")
					for name := range w.nodes {
						w.edit(name, func(n *corev1.Node) {
							maps.DeleteFunc(n.Annotations, func(key, _ string) bool { return strings.Contains(key, "drydock.dev/") })
							maps.Copy(n.Annotations, l.Nodes[name])
						})
					}
					w.ledger = maps.Clone(l.Ledger)
					w.ledgerRV++
				})
			}
			s.play(t, l.Step, l.After)
		})
	}
	for _, phase := range []remediations.Phase{remediations.PhasePending, remediations.PhaseActing, remediations.PhaseVerifying, remediations.PhaseExhausted} {
		require.NotZero(t, phases[phase], phase)
	}
}
