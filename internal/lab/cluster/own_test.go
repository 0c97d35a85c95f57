package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

func TestOnlyAClusterThatIsMarkedAsDisposableIsTested(t *testing.T) {
	t.Parallel()
	node := func(name, label string, images ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{DisposableLabel: label}}}
		n.Status.Images = []corev1.ContainerImage{{Names: images}}
		return n
	}
	const pause, other = "example.com/pause:3.10", "example.com/pause:3.9"
	for name, tc := range map[string]struct {
		objects []runtime.Object
		nodes   []string
		refused string
	}{
		"no label":           {objects: []runtime.Object{node("a", "", pause)}, refused: "no Node has the label drydock-test=disposable"},
		"another value":      {objects: []runtime.Object{node("a", "yes", pause)}, refused: "no Node has the label drydock-test=disposable"},
		"no node":            {refused: "no Node has the label drydock-test=disposable"},
		"one of two":         {objects: []runtime.Object{node("a", "disposable", pause), node("b", "", pause)}, nodes: []string{"a"}},
		"no image in common": {objects: []runtime.Object{node("a", "disposable", pause), node("b", "disposable", other)}, refused: "no pause image in common"},
		"with a Drydock": {objects: []runtime.Object{
			node("a", "disposable", pause),
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "ours", Namespace: "repairs", Labels: map[string]string{"app.kubernetes.io/name": "drydock"}}},
		}, refused: "it has a Drydock, in namespace repairs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names, image, err := disposableNodes(t.Context(), fake.NewClientset(tc.objects...))
			if tc.refused != "" {
				require.ErrorContains(t, err, tc.refused)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.nodes, names)
			require.Equal(t, pause, image)
		})
	}
}
