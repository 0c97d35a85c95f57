package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/engine"
)

// The API server's limit, in bytes.
const maxNote = 1024

// Events sends Events about Nodes, and about Drydock itself, which are attached to the ledger's
// ConfigMap. It implements engine.Recorder.
type Events struct {
	Recorder events.EventRecorder
	// From the cache. Nil if the Node is not there.
	Node   func(name string) *corev1.Node
	Ledger types.NamespacedName
}

// Event implements engine.Recorder.
func (r Events) Event(regarding string, e engine.Event) {
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: r.Ledger.Namespace, Name: r.Ledger.Name}
	switch o := e.About; {
	case o != nil:
		ref = &corev1.ObjectReference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID)}
	case regarding != "":
		ref = &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: regarding}
		if n := r.Node(regarding); n != nil {
			ref.UID = n.UID
		}
	}
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(ref, nil, kind, e.Reason, e.Action, "%s", text.Line(e.Note, maxNote-len("…")))
}
