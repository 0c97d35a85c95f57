package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// TestAPhaseLabelThatNoRecordExplainsIsRemoved: a person removed the record and left the label, for
// example with an old file of the Node. A left label would deny uncordons, or keep a breaker open.
func TestAPhaseLabelThatNoRecordExplainsIsRemoved(t *testing.T) {
	for name, c := range map[string]struct{ record, label, want string }{
		"Exhausted":                    {"", "Exhausted", ""},
		"Acting":                       {"", "Acting", ""},
		"Verifying":                    {"", "Verifying", ""},
		"a record that cannot be read": {"{}", "Acting", "Acting"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.edit("n0", func(n *corev1.Node) {
						n.Labels[remediations.PhaseLabel] = c.label
						if c.record != "" {
							n.Annotations[remediations.NodeRepairKey] = c.record
						}
					})
				})
				w.pass(2 * time.Minute)
				require.Equal(t, c.want, w.nodeOf("n0").Labels[remediations.PhaseLabel])
			})
		})
	}
}

// TestADeletedPhaseLabelComesBack: the policy of the API server denies uncordons by the label.
func TestADeletedPhaseLabelComesBack(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.ail("n0", 9); w.post("n0", remediations.StatusFiring) })
		verifying := func(n *corev1.Node) bool {
			return n.Labels[remediations.PhaseLabel] == string(remediations.PhaseVerifying)
		}
		require.True(t, w.until(2*time.Minute, func() bool { return verifying(w.nodes["n0"]) }))
		w.do(func() { w.edit("n0", func(n *corev1.Node) { delete(n.Labels, remediations.PhaseLabel) }) })
		require.False(t, verifying(w.nodeOf("n0")))
		w.pass(10 * time.Second)
		require.True(t, verifying(w.nodeOf("n0")))
	})
}
