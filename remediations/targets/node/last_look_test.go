package node_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestTheLastLookWithholdsTheCallOnAnotherMachine: between the intent and the call, another Node
// gets the name and the old annotations.
func TestTheLastLookWithholdsTheCallOnAnotherMachine(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		then, live string // UID/providerID
		withheld   bool
	}{
		"the control":                              {"uid-1/", "uid-1/", false},
		"another Node without a providerID":        {"uid-1/", "uid-2/", true},
		"the machine has registered again":         {"uid-1/civo://m1", "uid-2/civo://m1", false},
		"another machine":                          {"uid-1/civo://m1", "uid-1/civo://m2", true},
		"a Node without the machine's providerID":  {"uid-1/civo://m1", "uid-2/", true},
		"another Node that now has the providerID": {"uid-1/", "uid-2/civo://m1", true},
	} {
		t.Run(name, func(t *testing.T) {
			then, live := machine(c.then), machine(c.live)
			r := remediations.Record{
				V: remediations.RecordVersion, ID: "r1", Policy: "p", Cause: remediations.Cause{Alert: "0123456789abcdef"}, Phase: remediations.PhaseActing,
				Step: remediations.StepRef{Name: "reboot", Attempt: 1}, Done: remediations.Attempts{{Name: "reboot", Number: 1}}, Began: at, Since: at, Deadline: at.Add(time.Minute),
				Intent: &remediations.Intent{ID: "r1-0-1", At: at, UID: string(then.UID), ProviderID: then.Spec.ProviderID},
			}
			live.Annotations = map[string]string{remediations.NodeRepairKey: r.Encode()}
			err := node.MayStillAct(&remediations.Config{}, live, "r1-0-1", nil, nil)
			if !c.withheld {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, "the intent r1-0-1 is no longer on record")
		})
	}
}

// TestTheLastLookWithholdsTheCallBesideAnUnreadableRecord: that record may be of another repair in
// flight on the node.
func TestTheLastLookWithholdsTheCallBesideAnUnreadableRecord(t *testing.T) {
	for record, withheld := range map[string]bool{"": false, "{": true} {
		n := scene.Acting()
		if record != "" {
			n.Annotations[remediations.SidecarKey(scene.ThePod)] = record
		}
		err := node.MayStillAct(&remediations.Config{}, n, "r1-0-1", nil, nil)
		if !withheld {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "a record on the node cannot be read")
		require.Equal(t, remediations.ReasonNodeUnderRepair, remediations.WithheldFor(err, ""))
	}
}

func machine(named string) *corev1.Node {
	uid, providerID, _ := strings.Cut(named, "/")
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: types.UID(uid)}, Spec: corev1.NodeSpec{ProviderID: providerID}}
}
