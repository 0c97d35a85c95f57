package kube_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kube"
)

// sent is an events.EventRecorder that keeps the last Event.
type sent struct {
	about                      *corev1.ObjectReference
	kind, reason, action, note string
}

func (s *sent) Eventf(regarding, _ runtime.Object, kind, reason, action, note string, args ...any) {
	*s = sent{regarding.(*corev1.ObjectReference), kind, reason, action, fmt.Sprintf(note, args...)}
}

// TestAnEventIsAboutItsObject: that is a Node with the UID in the cache, an object of its own, or
// else the ledger. A provider's text is on one line, and within the API server's limit.
func TestAnEventIsAboutItsObject(t *testing.T) {
	var s sent
	e := kube.Events{Recorder: &s, Ledger: types.NamespacedName{Namespace: "drydock", Name: "drydock-ledger"}, Node: func(name string) *corev1.Node {
		if name != "n1" {
			return nil
		}
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u1"}}
	}}
	e.Event("n1", engine.Event{Warning: true, Reason: "RepairHeld", Action: "abc234", Note: "100%s of it"})
	require.Equal(t, sent{&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "u1"}, "Warning", "RepairHeld", "abc234", "100%s of it"}, s)
	e.Event("gone", engine.Event{Reason: "RepairEnded"})
	require.Equal(t, &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "gone"}, s.about)
	require.Equal(t, "Normal", s.kind)
	e.Event("", engine.Event{})
	require.Equal(t, &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "drydock", Name: "drydock-ledger"}, s.about)
	e.Event("n1", engine.Event{About: &remediations.Object{APIVersion: "sei.io/v1", Kind: "SeiNode", Namespace: "a", Name: "b", UID: "u2"}})
	require.Equal(t, &corev1.ObjectReference{APIVersion: "sei.io/v1", Kind: "SeiNode", Namespace: "a", Name: "b", UID: "u2"}, s.about)
	e.Event("n1", engine.Event{Note: strings.Repeat("ü", 2000) + "\nmore"})
	require.LessOrEqual(t, len(s.note), 1024)
	require.NotContains(t, s.note, "\n")
}
