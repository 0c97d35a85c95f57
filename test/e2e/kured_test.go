package e2e

import (
	"os"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
)

// withinKured bounds what kured does. After its start, kured waits for up to a minute and a half.
const withinKured = 4 * time.Minute

// TestKuredAndDrydockLeaveEachOthersNodeAlone: kured's DaemonSet has the affinity from the page
// about neighbours. While Drydock repairs a node, a reboot by kured is requested. kured does
// nothing until the repair has ended, and then reboots the node. Drydock does nothing on a node
// that kured reboots until kured is done, and then repairs it.
func TestKuredAndDrydockLeaveEachOthersNodeAlone(t *testing.T) {
	const node, mark = "node-79", "weave.works/kured-reboot-in-progress"
	page, err := os.ReadFile("../../docs/operate/other-systems.md")
	require.NoError(t, err)
	affinity := regexp.MustCompile("(?m)^\\| kured,.* node affinity `({[^`]+})`").FindSubmatch(page)
	require.NotNil(t, affinity, "docs/operate/other-systems.md has the affinity for kured's DaemonSet")
	y := newYard(t)
	var cures atomic.Bool
	y.machines(lab.CivoOptions{RebootTime: time.Second, Cures: func(civosim.Instance, civosim.Op) bool { return cures.Load() }})
	y.run(lab.DrydockOptions{Config: config(policy(map[string]any{"plan": []any{map[string]any{"step": "reboot", "wait": patience, "attempts": 1}}}))})
	kured, err := y.lab.StartKured(t.Context(), node, string(affinity[1]))
	require.NoError(t, err)
	rebooted := func() int {
		n, err := kured.Reboots()
		require.NoError(t, err)
		return n
	}
	eventually := func(wanted func() bool, what string) {
		require.Eventually(t, wanted, withinKured, 100*time.Millisecond, what)
	}
	eventually(kured.Runs, "kured runs")

	// Drydock begins first.
	y.fail(node)
	y.record(node, "the machine rebooted, the node still ill", verifying)
	eventually(func() bool { return !kured.Runs() }, "kured leaves a node under repair")
	require.NoError(t, kured.Ask())
	require.NoError(t, y.lab.Heal(t.Context(), node, ""))
	e := y.ended(node)
	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Zero(t, rebooted())

	eventually(func() bool { return rebooted() == 1 }, "kured reboots the node when the repair has ended")
	require.Contains(t, y.node(node).Annotations, mark)
	require.True(t, y.node(node).Spec.Unschedulable)

	// kured begins first.
	cures.Store(true)
	y.fail(node)
	says := y.held(node, remediations.ReasonNodeLeaving).Hold.Message
	require.Contains(t, says, mark)
	require.Contains(t, says, "kured")
	require.True(t, kured.Runs(), "kured stays on a node whose repair only waits")
	require.Equal(t, 1, y.reboots(node))

	require.NoError(t, kured.Booted())
	eventually(func() bool { return y.reboots(node) == 2 }, "Drydock repairs the node when kured is done")
	y.await(node, "kured's cordon and mark gone, the repair ended", func(n *corev1.Node) bool {
		_, marked := n.Annotations[mark]
		return !marked && !n.Spec.Unschedulable && len(remediations.DecodeHistory(n.Annotations[remediations.HistoryKey])) == 2
	})
	require.Equal(t, 1, rebooted())
}
