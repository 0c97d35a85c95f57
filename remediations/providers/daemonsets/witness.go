package daemonsets

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/signs"
)

// PodWitness reports whether a DaemonSet's pod on a node is Ready. A policy may require this sign
// in addition to its alert.
type PodWitness struct{ Client kubernetes.Interface }

var _ engine.Witness = PodWitness{}

// Testify reports whether the DaemonSet's pod on the node is Ready. If the node has no pod, the
// answer is unknown, because the DaemonSet may not be meant for this node.
func (w PodWitness) Testify(ctx context.Context, m engine.Machine, s signs.Sign) signs.Testimony {
	namespace, name, _ := strings.Cut(s.Name, "/")
	d := Pod{Client: w.Client, DaemonSet: types.NamespacedName{Namespace: namespace, Name: name}}
	pods, err := d.onNode(ctx, m.Node)
	var found *kit.Refusal
	switch {
	case errors.As(err, &found):
		return signs.Testimony{Answer: signs.Unknown, Reason: signs.DaemonSetMissing, Saw: found.Error()}
	case err != nil:
		return signs.Testimony{Answer: signs.Unknown, Saw: fmt.Sprintf("the pods of DaemonSet %s could not be read: %v", s.Name, err)}
	case len(pods) == 0:
		return signs.Testimony{Answer: signs.Unknown, Reason: signs.PodMissing, Saw: fmt.Sprintf("DaemonSet %s has no pod on the node", s.Name)}
	}
	ill := -1
	for i := range pods {
		switch p := &pods[i]; {
		case podReady(p) && p.DeletionTimestamp == nil:
			return signs.Testimony{Answer: signs.Well, Saw: "pod " + kit.NameOf(p) + " is Ready" + readySince(p)}
		case !podReady(p):
			ill = i
		}
	}
	if ill < 0 {
		return signs.Testimony{Answer: signs.Unknown, Saw: "pod " + kit.NameOf(&pods[0]) + " is Ready and being deleted"}
	}
	return signs.Testimony{Answer: signs.Ill, Saw: "pod " + kit.NameOf(&pods[ill]) + " is not Ready" + readySince(&pods[ill])}
}

func readySince(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && !c.LastTransitionTime.IsZero() {
			return " since " + c.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z07:00")
		}
	}
	return ""
}
