// Package drain drains nodes of the lab, with a real API server and its Eviction API, the real
// disruption controller, and pods that KWOK runs.
package drain

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/kube"
)

// elsewhere is a node that no test drains.
const elsewhere = "node-0"

func TestMain(m *testing.M) {
	lab.Main(m, lab.Options{Components: lab.ControlPlane, Nodes: 1})
}

// rights are all rights that a drain needs. Every drain in this package has only these.
func rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"get"}},
		{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"list"}},
	}
}

// place is a test's own node and namespace. It has a Drainer behind a proxy that sees the Drainer's
// requests.
type place struct {
	t        *testing.T
	lab      *lab.Lab
	admin    kubernetes.Interface
	ns, node string
	drainer  kube.Drainer

	mu            sync.Mutex
	before, after func(pod string) lab.Verdict // set by onEviction
	evictions     []string                     // the names of the evicted pods, in order
	pages         int
}

var places atomic.Int32

func newPlace(t *testing.T, rules ...rbacv1.PolicyRule) *place {
	t.Helper()
	if rules == nil {
		rules = rights()
	}
	l := lab.Shared(t)
	name := fmt.Sprint("drained-", places.Add(1))
	p := &place{t: t, lab: l, admin: l.Client(), ns: name, node: name}
	require.NoError(t, l.AddNode(t.Context(), lab.NodeSpec{Name: name}))
	proxy, err := l.NewProxy()
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	proxy.Before(p.see)
	proxy.After(func(res *http.Response) lab.Verdict {
		if _, after := p.hooks(); after != nil && evicted(res.Request) != "" {
			return after(evicted(res.Request))
		}
		return lab.Pass
	})
	file, err := l.ServiceAccountKubeconfig(t.Context(), p.ns, "drainer", proxy.URL())
	require.NoError(t, err)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: p.ns}, Rules: rules}
	_, err = p.admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: p.ns}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: p.ns},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.ns, Name: "drainer"}},
	}
	_, err = p.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, l.AwaitRight(t.Context(), "system:serviceaccount:"+p.ns+":drainer", authorizationv1.ResourceAttributes{
		Verb: rules[0].Verbs[0], Group: rules[0].APIGroups[0], Resource: rules[0].Resources[0], // the authorizer learns all of the rights at the same time
	}))
	config, err := clientcmd.BuildConfigFromFlags("", file)
	require.NoError(t, err)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	p.eventually(func() bool { // without it no pod is admitted
		_, err := p.admin.CoreV1().ServiceAccounts(p.ns).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	p.eventually(func() bool { // without it the node does not stay healthy
		_, err := p.admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), p.node, metav1.GetOptions{})
		return err == nil && !p.has(corev1.TaintNodeNotReady)
	})
	p.drainer = kube.Drainer{Client: client, Now: time.Now, Every: 100 * time.Millisecond}
	p.cordon(true)
	return p
}

// evicted returns the name of the pod that a request evicts.
func evicted(r *http.Request) string {
	if dir, last := path.Split(r.URL.Path); r.Method == http.MethodPost && last == "eviction" {
		return path.Base(dir)
	}
	return ""
}

func (p *place) see(r *http.Request) lab.Verdict {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods") {
		if r.URL.Query().Get("fieldSelector") != "spec.nodeName="+p.node {
			p.t.Errorf("pods of other nodes were asked for: %s", r.URL)
		}
		p.mu.Lock()
		p.pages++
		p.mu.Unlock()
	}
	pod := evicted(r)
	if pod == "" {
		return lab.Pass
	}
	p.mu.Lock()
	p.evictions = append(p.evictions, pod)
	p.mu.Unlock()
	if before, _ := p.hooks(); before != nil {
		return before(pod)
	}
	return lab.Pass
}

// onEviction sets two hooks. before sees each eviction before the API server does. after sees each
// eviction that the API server has carried out.
func (p *place) onEviction(before, after func(pod string) lab.Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before, p.after = before, after
}

func (p *place) hooks() (before, after func(pod string) lab.Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.before, p.after
}

func (p *place) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.evictions)
}

func (p *place) eventually(f func() bool) {
	p.t.Helper()
	require.Eventually(p.t, f, lab.Patience, 20*time.Millisecond)
}

func (p *place) cordon(on bool) {
	p.t.Helper()
	_, err := p.admin.CoreV1().Nodes().Patch(p.t.Context(), p.node, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, on), metav1.PatchOptions{})
	require.NoError(p.t, err)
}

func (p *place) drain(o kube.DrainOptions) (kube.DrainReport, error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), lab.Patience)
	defer cancel()
	return p.drainer.Drain(ctx, p.node, o)
}

// started is a drain that is under way.
type started struct {
	p      *place
	cancel context.CancelCauseFunc
	said   chan string
	done   chan struct{}
	report kube.DrainReport
	err    error
}

func (p *place) start(o kube.DrainOptions) *started {
	ctx, cancel := context.WithCancelCause(p.t.Context())
	s := &started{p: p, cancel: cancel, said: make(chan string, 1000), done: make(chan struct{})}
	o.Progress = func(r kube.DrainReport) { s.said <- r.String() }
	p.t.Cleanup(func() { cancel(nil); <-s.done })
	go func() {
		defer close(s.done)
		s.report, s.err = p.drainer.Drain(ctx, p.node, o)
	}()
	return s
}

// says waits until the progress contains the sentence.
func (s *started) says(sentence string) {
	s.p.t.Helper()
	deadline, sentences := time.After(lab.Patience), []string{}
	for {
		select {
		case now := <-s.said:
			if sentences = append(sentences, now); strings.Contains(now, sentence) {
				return
			}
		case <-s.done:
			require.Fail(s.p.t, "the drain ended", "without saying %q; it said %q and ended with %v", sentence, sentences, s.err)
		case <-deadline:
			require.Fail(s.p.t, "the drain does not say it", "%q; it said %q", sentence, sentences)
		}
	}
}

// ends waits until the drain has ended.
func (s *started) ends() (kube.DrainReport, error) {
	s.p.t.Helper()
	select {
	case <-s.done:
	case <-time.After(lab.Patience):
		require.Fail(s.p.t, "the drain does not end")
	}
	return s.report, s.err
}

// on returns the names of the pods on the node, according to the API server.
func (p *place) on() []string {
	p.t.Helper()
	list, err := p.admin.CoreV1().Pods(p.ns).List(p.t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + p.node})
	require.NoError(p.t, err)
	names := []string{}
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names
}

func template(app string, change ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.invalid/none"}}},
	}
	for _, c := range change {
		c(&pod)
	}
	return pod
}

func withEmptyDir(pod *corev1.Pod) {
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

func withFinalizer(pod *corev1.Pod) { pod.Finalizers = []string{"drydock.dev/of-this-test"} }

// run creates a pod without a controller on the node.
func (p *place) run(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p.t.Helper()
	pod := template(name, change...)
	pod.Name = name
	if pod.Spec.NodeName == "" {
		pod.Spec.NodeName = p.node
	}
	made, err := p.admin.CoreV1().Pods(p.ns).Create(p.t.Context(), &pod, metav1.CreateOptions{})
	require.NoError(p.t, err)
	if len(pod.Finalizers) > 0 {
		p.t.Cleanup(func() { p.unfinalize(name) })
	}
	return made
}

// unfinalize removes a pod's finalizers, so that it can be deleted. It also works in a cleanup.
func (p *place) unfinalize(name string) {
	ctx := context.WithoutCancel(p.t.Context())
	_, err := p.admin.CoreV1().Pods(p.ns).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(p.t, err)
	}
}

// replicas creates a ReplicaSet whose first pods are on the node. The pods that replace them stay
// Pending, because there is no scheduler.
func (p *place) replicas(app string, n int, change ...func(*corev1.Pod)) {
	p.t.Helper()
	pod, selector := template(app, change...), &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: appsv1.ReplicaSetSpec{
		Replicas: ptr.To(int32(n)), Selector: selector, Template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec},
	}}
	_, err := p.admin.AppsV1().ReplicaSets(p.ns).Create(p.t.Context(), set, metav1.CreateOptions{})
	require.NoError(p.t, err)
	p.bind(app, n, p.node)
}

// bind binds n pods of the app that have no node yet to a node, and waits until all of the app's
// pods there run.
func (p *place) bind(app string, n int, node string) {
	p.t.Helper()
	bound := 0
	p.eventually(func() bool {
		list, err := p.admin.CoreV1().Pods(p.ns).List(p.t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
		require.NoError(p.t, err)
		running := 0
		for _, pod := range list.Items {
			switch {
			case pod.Spec.NodeName == "" && bound < n:
				b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
				require.NoError(p.t, p.admin.CoreV1().Pods(p.ns).Bind(p.t.Context(), b, metav1.CreateOptions{}))
				bound++
			case pod.Spec.NodeName == node && pod.Status.Phase == corev1.PodRunning:
				running++
			}
		}
		return bound == n && running >= n
	})
}

// budget creates a PodDisruptionBudget, and waits until the disruption controller has counted that
// many healthy pods.
func (p *place) budget(name, app string, needs, healthy int) {
	p.t.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr.To(intstr.FromInt32(int32(needs))), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}}
	_, err := p.admin.PolicyV1().PodDisruptionBudgets(p.ns).Create(p.t.Context(), b, metav1.CreateOptions{})
	require.NoError(p.t, err)
	p.eventually(func() bool {
		b, err := p.admin.PolicyV1().PodDisruptionBudgets(p.ns).Get(p.t.Context(), name, metav1.GetOptions{})
		return err == nil && b.Status.ObservedGeneration == b.Generation && int(b.Status.CurrentHealthy) == healthy
	})
}
