package crash

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
)

// story is a course of events that must reach its end whatever happens to Drydock on the way.
type story struct {
	name string
	options
	play func(y *yard)
}

// never means that no reboot cures the machine.
const never = 1000

var stories = []story{
	{"the second reboot cures", options{cures: 2, wait: patient}, func(y *yard) {
		y.fail(0)
		y.kept()
	}},
	{"nothing cures, and a person resets", options{cures: never, wait: "10s"}, func(y *yard) {
		y.fail(0)
		y.kept()
		require.NoError(y.t, y.alerts.resolve(y.t.Context(), y.nodes[0]))
		y.await("its end to be written, unless it dies with it", func(v *view) bool {
			alerts := remediations.AlertsOn(v.nodes[y.nodes[0]].Annotations)
			return y.replicas[0].deaths.Load() > 0 || !slices.ContainsFunc(alerts, func(a remediations.Alert) bool { return a.Status == "firing" })
		})
		require.NoError(y.t, y.lab.Heal(y.t.Context(), y.nodes[0], "a-new-boot"))
		y.annotate(0, remediations.ResetKey, "true")
		y.await("the repair to be forgotten", func(v *view) bool {
			n := v.nodes[y.nodes[0]]
			return v.record(n.Name) == nil && n.Labels[remediations.PhaseLabel] == "" && !n.Spec.Unschedulable &&
				n.Annotations[remediations.ResetKey] == "" && len(remediations.AlertsOn(n.Annotations)) == 0 && len(v.ledger.Repairs) == 0
		})
		y.sound()
	}},
	{"paused between the attempts", options{cures: 2, attempts: 3}, func(y *yard) {
		y.fail(0)
		y.await("the proof of the first attempt to be waited for", func(v *view) bool {
			r := v.record(y.nodes[0])
			return r != nil && r.Phase == remediations.PhaseVerifying
		})
		y.annotate(0, remediations.PauseKey, "true")
		y.await("the hold, without a slot", func(v *view) bool {
			r := v.record(y.nodes[0])
			return r != nil && r.Phase == remediations.PhasePending && r.Hold != nil && r.Hold.Reason == remediations.ReasonPaused && len(v.ledger.Slots) == 0
		})
		y.annotate(0, remediations.PauseKey, "")
		y.kept()
	}},
	{"two nodes and one slot", options{nodes: 2, attempts: 3, held: true}, func(y *yard) {
		y.fail(0)
		y.await("the slot to be taken", func(v *view) bool {
			r := v.record(y.nodes[0])
			return r != nil && r.Phase == remediations.PhaseVerifying
		})
		y.fail(1)
		y.await("the other to be held", func(v *view) bool { return v.ledger.Status.Holds[remediations.ReasonAtLimit] != "" })
		close(y.back)
		y.kept()
	}},
}

// annotate sets a person's key on a node, or removes it.
func (y *yard) annotate(i int, key, value string) {
	y.t.Helper()
	v := fmt.Sprintf("%q", value)
	if value == "" {
		v = "null"
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, v)
	_, err := y.lab.Client().CoreV1().Nodes().Patch(y.t.Context(), y.nodes[i], types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(y.t, err)
}

// inOrder puts each provider's call behind its intent. The call runs beside Drydock's loop, which
// may write to the ledger before or after it.
func inOrder(names []string) []string {
	var out, intents []string
	for _, name := range names {
		if strings.HasPrefix(name, "provider ") {
			i := slices.Index(out, intents[len(intents)-1])
			out = slices.Insert(out, i+1, name)
			continue
		}
		if strings.Contains(name, "PATCH alert firing #") {
			continue // the poll may find an alert while its post is under way, and then both write the same
		}
		if strings.Contains(name, " PATCH Acting ") {
			intents = append(intents, name)
		}
		out = append(out, name)
	}
	return out
}
