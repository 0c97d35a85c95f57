package daemonsets_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/daemonsets"
	"drydock.dev/drydock/remediations/signs"
)

// ownPod is a DaemonSet's pod on node n1.
func ownPod(ds *appsv1.DaemonSet, name string, ready bool, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ds.Namespace, Name: name, Labels: ds.Spec.Selector.MatchLabels,
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: ds.Name, UID: ds.UID, Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
			Type: corev1.PodReady, Status: map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[ready],
		}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// TestANodesOwnPodTestifies: only an existing pod of that DaemonSet that is not Ready shows a
// fault. A missing pod, or one that could not be read, shows nothing.
func TestANodesOwnPodTestifies(t *testing.T) {
	ds := daemonSet("cilium", "cilium:1")
	ds.UID = "cilium-uid"
	leaving := func(p *corev1.Pod) {
		p.DeletionTimestamp, p.Finalizers = new(metav1.Now()), []string{"example.com/slow"}
	}
	for name, test := range map[string]struct {
		pods   []runtime.Object
		away   bool // the API server
		answer signs.Answer
		saw    string
	}{
		"it is Ready":                         {pods: []runtime.Object{ds, ownPod(ds, "a", true)}, answer: signs.Well, saw: "pod kube-system/a is Ready"},
		"it is not Ready":                     {pods: []runtime.Object{ds, ownPod(ds, "a", false)}, answer: signs.Ill, saw: "pod kube-system/a is not Ready"},
		"it is not Ready and being deleted":   {pods: []runtime.Object{ds, ownPod(ds, "a", false, leaving)}, answer: signs.Ill, saw: "pod kube-system/a is not Ready"},
		"its successor is Ready":              {pods: []runtime.Object{ds, ownPod(ds, "a", false, leaving), ownPod(ds, "b", true)}, answer: signs.Well, saw: "pod kube-system/b is Ready"},
		"it is Ready and being deleted":       {pods: []runtime.Object{ds, ownPod(ds, "a", true, leaving)}, answer: signs.Unknown, saw: "is Ready and being deleted"},
		"there is none":                       {pods: []runtime.Object{ds}, answer: signs.Unknown, saw: "DaemonSet kube-system/cilium has no pod on the node"},
		"it has ended":                        {pods: []runtime.Object{ds, ownPod(ds, "a", false, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}, answer: signs.Unknown, saw: "has no pod on the node"},
		"a stranger's has the same labels":    {pods: []runtime.Object{ds, ownPod(ds, "a", false, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another" })}, answer: signs.Unknown, saw: "has no pod on the node"},
		"the DaemonSet does not exist":        {answer: signs.Unknown, saw: "DaemonSet kube-system/cilium does not exist"},
		"the API server does not let it look": {pods: []runtime.Object{ds, ownPod(ds, "a", false)}, away: true, answer: signs.Unknown, saw: "could not be read: "},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(test.pods...)
			if test.away {
				client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
			}
			said := daemonsets.PodWitness{Client: client}.Testify(t.Context(), engine.Machine{Node: "n1"}, signs.Sign{Kind: signs.DaemonSetPod, Name: "kube-system/cilium"})
			require.Equal(t, test.answer, said.Answer, said.Saw)
			require.Contains(t, said.Saw, test.saw)
		})
	}
}
