package clusterapi

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

func apiGone(err error) bool { return apierrors.IsNotFound(err) }

// The whole chain, with a MachineHealthCheck: alert, witness, intent, annotation, Cluster API's own drain and replacement, proof. The
// pod of the node runs again, on the node that came for it.
func TestAMachineIsReplacedAndItsPodRunsAgain(t *testing.T) {
	y := newYard(t, "whole", true)
	y.run(lab.DrydockOptions{}, step(proven))
	old, machine := y.node(y.nodes[0]), y.machine(y.nodes[0])
	y.app("web", old.Name)

	y.fail(old.Name)
	e, fresh := y.ended()

	require.Equal(t, remediations.Recovered, e.Outcome, e.Why)
	require.Equal(t, []string{"replace:1"}, e.Steps)
	y.requireReplaced(old, fresh, machine, "annotated by "+e.ID+"-0-1", "deleted")
	y.bind("web", fresh.Name)
	y.eventually(func() bool { return y.running("web") == fresh.Name }, "the pod runs on Node %s", fresh.Name)
}

// isRequest says that it asks for the replacement of a Machine.
func isRequest(r *http.Request) bool {
	return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/namespaces/"+lab.ClusterAPINamespace+"/machines/")
}

// Without a MachineHealthCheck, by the conditions. The answer is lost on its way: it counts as done, and is not asked for again.
func TestALostAnswerLeavesOneRequest(t *testing.T) {
	y := newYard(t, "lost", false)
	_, proxy := y.behind(step(proven))
	var requests atomic.Int32
	proxy.After(func(r *http.Response) lab.Verdict {
		if !isRequest(r.Request) {
			return lab.Pass
		}
		requests.Add(1)
		return lab.Reset
	})
	old, machine := y.node(y.nodes[0]), y.machine(y.nodes[0])

	y.fail(old.Name)
	e, fresh := y.ended()

	require.Equal(t, remediations.Recovered, e.Outcome, e.Why)
	require.Equal(t, []string{"replace:1"}, e.Steps)
	require.EqualValues(t, 1, requests.Load())
	y.requireReplaced(old, fresh, machine, "Drydock asks for a replacement, attempt "+e.ID+"-0-1", "deleted")
}

// Drydock dies when the request is done and before its answer: that is found out afterwards, also when the Node is gone by then.
func TestKilledBetweenTheRequestAndItsAnswer(t *testing.T) {
	y := newYard(t, "killed", true)
	d, proxy := y.behind(step(proven))
	proxy.After(func(r *http.Response) lab.Verdict {
		if !isRequest(r.Request) {
			return lab.Pass
		}
		d.Kill()
		return lab.Reset
	})
	old, machine := y.node(y.nodes[0]), y.machine(y.nodes[0])

	y.fail(old.Name)
	lab.AwaitEnd(t, d.Process, within)
	proxy.After(nil)
	y.eventually(func() bool {
		_, err := y.lab.Client().CoreV1().Nodes().Get(t.Context(), old.Name, metav1.GetOptions{})
		return apiGone(err)
	}, "Cluster API replaces the machine without Drydock")
	y.free()
	require.NoError(t, d.Start(t.Context()))
	e, fresh := y.ended()

	require.Equal(t, remediations.Recovered, e.Outcome, e.Why)
	require.Equal(t, []string{"replace:1"}, e.Steps)
	y.requireReplaced(old, fresh, machine, "annotated by "+e.ID+"-0-1", "deleted")
}

// Drydock dies between its intent and the request: that attempt is never made, and the next one once.
func TestKilledBetweenTheIntentAndTheRequest(t *testing.T) {
	y := newYard(t, "unsent", true)
	d, proxy := y.behind(step(5*time.Second), step(proven))
	proxy.Before(func(r *http.Request) lab.Verdict {
		if !isRequest(r) {
			return lab.Pass
		}
		d.Kill()
		return lab.Reset
	})
	old, machine := y.node(y.nodes[0]), y.machine(y.nodes[0])

	y.fail(old.Name)
	lab.AwaitEnd(t, d.Process, within)
	proxy.Before(nil)
	r := remediations.ReadJournal(y.node(old.Name)).Record
	require.NotNil(t, r, "the intent is on the Node")
	require.Equal(t, remediations.Acting, r.Phase)
	require.Empty(t, y.seen())
	y.free()
	require.NoError(t, d.Start(t.Context()))
	e, fresh := y.ended()

	require.Equal(t, remediations.Recovered, e.Outcome, e.Why)
	require.Equal(t, []string{"replace:1", "replace:1"}, e.Steps)
	y.requireReplaced(old, fresh, machine, "annotated by "+e.ID+"-1-1", "deleted")
}

// The API server refuses the request: nothing was done, and the next attempt is made once it lets it.
func TestARefusedRequestChangesNothing(t *testing.T) {
	y := newYard(t, "refused", true)
	_, proxy := y.behind(step(proven), step(proven))
	var requests atomic.Int32
	proxy.Before(func(r *http.Request) lab.Verdict {
		if isRequest(r) && requests.Add(1) == 1 {
			return lab.TooManyRequests
		}
		return lab.Pass
	})
	old, machine := y.node(y.nodes[0]), y.machine(y.nodes[0])

	y.fail(old.Name)
	e, fresh := y.ended()

	require.Equal(t, remediations.Recovered, e.Outcome, e.Why)
	require.Equal(t, []string{"replace:1", "replace:1"}, e.Steps)
	require.EqualValues(t, 2, requests.Load())
	y.requireReplaced(old, fresh, machine, "annotated by "+e.ID+"-1-1", "deleted")
}

// app runs a pod on the node. One that is evicted ends at once, as with a kubelet that still works though it says that it is not Ready.
func (y *yard) app(name, node string) {
	y.t.Helper()
	labels := map[string]string{"app": name}
	_, err := y.lab.Client().AppsV1().ReplicaSets("default").Create(y.t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}},
		},
	}, metav1.CreateOptions{})
	require.NoError(y.t, err)
	y.bind(name, node)
	y.eventually(func() bool { return y.running(name) == node }, "the pod runs")
	go func() {
		pods := y.lab.Client().CoreV1().Pods("default")
		w, err := pods.Watch(y.t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok && pod.DeletionTimestamp != nil && pod.Spec.NodeName == node {
				_ = pods.Delete(y.t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
			}
		}
	}()
}

// bind does what a scheduler does.
func (y *yard) bind(app, node string) {
	y.t.Helper()
	pods := y.lab.Client().CoreV1().Pods("default")
	y.eventually(func() bool {
		all, err := pods.List(y.t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
		require.NoError(y.t, err)
		for _, pod := range all.Items {
			if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil {
				return pods.Bind(y.t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{}) == nil
			}
		}
		return false
	}, "a pod of %s waits for a node", app)
}

// running is the node on which the app's pod runs; empty: it does not.
func (y *yard) running(app string) string {
	y.t.Helper()
	all, err := y.lab.Client().CoreV1().Pods("default").List(y.t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	require.NoError(y.t, err)
	for _, pod := range all.Items {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			return pod.Spec.NodeName
		}
	}
	return ""
}
