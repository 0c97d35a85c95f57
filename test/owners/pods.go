package owners

import (
	"context"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// App makes a ReplicaSet with one pod, which no scheduler binds. change changes the pod's template,
// and may be nil.
func (e *Env) App(name string, change func(*corev1.PodTemplateSpec)) {
	e.T.Helper()
	labels := map[string]string{"app": name}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	if change != nil {
		change(&template)
	}
	_, err := e.Lab.Client().AppsV1().ReplicaSets("default").Create(e.T.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.ReplicaSetSpec{Replicas: ptr.To(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	require.NoError(e.T, err)
	e.T.Cleanup(func() { // a waiting pod would keep the replacements of later tests from being proven
		err := e.Lab.Client().AppsV1().ReplicaSets("default").Delete(context.WithoutCancel(e.T.Context()), name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
		require.NoError(e.T, err)
		e.Eventually(func() bool { return e.Unbound(name) == "" }, "no pod of %s waits for a node", name)
	})
}

// Bind binds the app's pod to the node, as a scheduler does.
func (e *Env) Bind(app, node string) {
	e.T.Helper()
	e.Eventually(func() bool {
		pod := e.Unbound(app)
		return pod != "" && e.Lab.Client().CoreV1().Pods("default").Bind(e.T.Context(), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
		}, metav1.CreateOptions{}) == nil
	}, "a pod of %s waits for a node", app)
	e.Eventually(func() bool { return e.Running(app) == node }, "the pod runs")
}

// Unbound returns the app's pod that has no node yet, or "".
func (e *Env) Unbound(app string) string {
	e.T.Helper()
	for _, pod := range e.pods(app) {
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil {
			return pod.Name
		}
	}
	return ""
}

// Running returns the node of the app's pod, or "" if the pod does not run.
func (e *Env) Running(app string) string {
	e.T.Helper()
	for _, pod := range e.pods(app) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			return pod.Spec.NodeName
		}
	}
	return ""
}

func (e *Env) pods(app string) []corev1.Pod {
	e.T.Helper()
	all, err := e.Lab.Client().CoreV1().Pods("default").List(context.WithoutCancel(e.T.Context()), metav1.ListOptions{LabelSelector: "app=" + app})
	require.NoError(e.T, err)
	return all.Items
}

// EndEvicted ends each pod of the app on the node as soon as it is evicted. A kubelet that still
// works does so, even if it reports that it is not Ready.
func (e *Env) EndEvicted(app, node string) {
	pods := e.Lab.Client().CoreV1().Pods("default")
	ctx, stop := context.WithCancel(context.WithoutCancel(e.T.Context()))
	e.T.Cleanup(stop)
	go func() {
		w, err := pods.Watch(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return
		}
		defer w.Stop()
		for event := range w.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.DeletionTimestamp != nil && pod.Spec.NodeName == node {
				_ = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
			}
		}
	}()
}
