package kube_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/kube"
)

// TestAPodOutsideTheProvidersNamespacesIsUnknown. It must not be an error that makes the sender try
// again: the chart gives rights only in the providers' namespaces.
func TestAPodOutsideTheProvidersNamespacesIsUnknown(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid"}}
	pod := func(namespace string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a-0"}, Spec: corev1.PodSpec{NodeName: n.Name}}
	}
	client := fake.NewClientset(n, pod("sei"), pod("dev"))
	client.PrependReactor("get", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := apierrors.NewForbidden(corev1.Resource("pods"), "a-0", errors.New("no right in this namespace"))
		return action.GetNamespace() != "sei", nil, err
	})
	in := podIntakeOf(t, client)
	in.Node = func(string) *corev1.Node { return n }
	record := func(namespace string, namespaces ...string) (intake.Result, error) {
		in.Carriers[remediations.KindSidecar] = intake.OfPods(kube.Pods{Client: client, Namespaces: namespaces}.Hosts)
		about := aboutPod("a-0")
		about["namespace"] = namespace
		return in.Record(t.Context(), about, "firing", time.Unix(1700000000, 0))
	}
	result, err := record("dev", "sei", "sei-2")
	require.NoError(t, err)
	require.Equal(t, intake.UnknownPod, result)
	require.Empty(t, client.Actions(), "nobody is asked")

	result, err = record("sei", "sei", "sei-2")
	require.NoError(t, err)
	require.Equal(t, intake.Accepted, result, "control")
	_, err = record("dev")
	require.True(t, apierrors.IsForbidden(err), "a right is missing where the provider takes every namespace: %v", err)
}
