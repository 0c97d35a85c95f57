package kube

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/rescue"
)

// Histories adds entries about repairs that a replica made while the API server did not answer. Any
// replica may write them.
type Histories struct{ Client kubernetes.Interface }

var _ rescue.HistoryWriter = Histories{}

// historyTries is for other writers that change the Node at the same time.
const historyTries = 5

// Write adds the entry to the Node's history, unless another replica has written it. It returns
// ErrNotFound if there is no such Node, and ErrConflict if other writers kept changing the Node.
func (h Histories) Write(ctx context.Context, node string, e remediations.Entry) error {
	var err error
	for range historyTries {
		n, getErr := h.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if getErr != nil {
			return translate("reading Node "+node, getErr)
		}
		old := remediations.DecodeHistory(n.Annotations[remediations.HistoryKey])
		if slices.ContainsFunc(old, func(o remediations.Entry) bool { return o.Target == e.Target && (o.ID == e.ID || o.SameObserved(e)) }) {
			return nil
		}
		value := remediations.EncodeHistory(old, e)
		p := nodePatch{Metadata: patchMeta{UID: n.UID, ResourceVersion: n.ResourceVersion, Annotations: map[string]*string{remediations.HistoryKey: &value}}}
		if _, err = patchNode(ctx, h.Client, node, p); !errors.Is(err, engine.ErrConflict) {
			return err
		}
	}
	return err
}
