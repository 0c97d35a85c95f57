package daemonsets_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/daemonsets"
)

func still() error { return nil }

// daemonSets is a lab whose DaemonSets run: its controllers make their pods, the test's own
// scheduler binds them, and KWOK runs and ends them.
type daemonSets struct {
	*lab.Lab
	t *testing.T
}

func newDaemonSets(t *testing.T) daemonSets {
	l := lab.New(t, lab.Options{Components: lab.ControlPlane, Nodes: 3, Out: t.Output()})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			schedule(ctx, l.Client())
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	return daemonSets{l, t}
}

// schedule binds DaemonSets' pods to their nodes, until the watch ends.
func schedule(ctx context.Context, client kubernetes.Interface) {
	w, err := client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if err != nil {
		return
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		p, ok := e.Object.(*corev1.Pod)
		if !ok || p.Spec.NodeName != "" || p.Spec.Affinity == nil || p.DeletionTimestamp != nil {
			continue
		}
		node := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
		_ = client.CoreV1().Pods(p.Namespace).Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
	}
}

func daemonSet(name, image string) *appsv1.DaemonSet {
	labels := map[string]string{"k8s-app": name}
	return &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: labels},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers:  []corev1.Container{{Name: name, Image: image}},
					Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				},
			},
		},
	}
}

// create makes a DaemonSet and waits until it runs on every node.
func (l daemonSets) create(ds *appsv1.DaemonSet) types.NamespacedName {
	l.t.Helper()
	made, err := l.Client().AppsV1().DaemonSets(ds.Namespace).Create(l.t.Context(), ds, metav1.CreateOptions{})
	require.NoError(l.t, err)
	name := types.NamespacedName{Namespace: made.Namespace, Name: made.Name}
	l.settled(name)
	return name
}

// settled waits until all pods of the DaemonSet are new and available.
func (l daemonSets) settled(name types.NamespacedName) *appsv1.DaemonSet {
	l.t.Helper()
	var ds *appsv1.DaemonSet
	require.Eventually(l.t, func() bool {
		var err error
		ds, err = l.Client().AppsV1().DaemonSets(name.Namespace).Get(l.t.Context(), name.Name, metav1.GetOptions{})
		return err == nil && ds.Status.ObservedGeneration == ds.Generation && ds.Status.UpdatedNumberScheduled == 3 && ds.Status.NumberAvailable == 3
	}, 5*time.Minute, 100*time.Millisecond, "%s runs on every node", name)
	return ds
}

// pods returns the DaemonSet's pods on the node, by name.
func (l daemonSets) pods(name types.NamespacedName, node string) map[string]types.UID {
	l.t.Helper()
	list, err := l.Client().CoreV1().Pods(name.Namespace).List(l.t.Context(), metav1.ListOptions{LabelSelector: "k8s-app=" + name.Name, FieldSelector: "spec.nodeName=" + node})
	require.NoError(l.t, err)
	out := map[string]types.UID{}
	for _, p := range list.Items {
		out[p.Name] = p.UID
	}
	return out
}

// rule allows the verbs on the named objects; without names on any object.
func rule(group, resource string, verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs, ResourceNames: names}
}

// only returns a client whose rights in kube-system are the rules namespaced, and whose rights on
// objects without a namespace are the rules cluster.
func (l daemonSets) only(cluster []rbacv1.PolicyRule, namespaced ...rbacv1.PolicyRule) kubernetes.Interface {
	l.t.Helper()
	rbac, named := l.Client().RbacV1(), metav1.ObjectMeta{Name: "bounded"}
	subjects := []rbacv1.Subject{{Kind: "User", Name: "bounded", APIGroup: rbacv1.GroupName}}
	_, err := rbac.Roles("kube-system").Create(l.t.Context(), &rbacv1.Role{ObjectMeta: named, Rules: namespaced}, metav1.CreateOptions{})
	require.NoError(l.t, err)
	_, err = rbac.RoleBindings("kube-system").Create(l.t.Context(), &rbacv1.RoleBinding{ObjectMeta: named, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "bounded"}}, metav1.CreateOptions{})
	require.NoError(l.t, err)
	_, err = rbac.ClusterRoles().Create(l.t.Context(), &rbacv1.ClusterRole{ObjectMeta: named, Rules: cluster}, metav1.CreateOptions{})
	require.NoError(l.t, err)
	_, err = rbac.ClusterRoleBindings().Create(l.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: named, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bounded"}}, metav1.CreateOptions{})
	require.NoError(l.t, err)
	client, err := l.ClientAs("bounded")
	require.NoError(l.t, err)
	require.Eventually(l.t, func() bool { // the authorizer watches
		_, err := client.AppsV1().DaemonSets("kube-system").Get(l.t.Context(), namespaced[0].ResourceNames[0], metav1.GetOptions{})
		return err == nil
	}, 5*time.Minute, 50*time.Millisecond)
	return client
}

func TestANodesOwnPodIsRestartedAndItsSuccessorIsTheProof(t *testing.T) {
	l := newDaemonSets(t)
	name := l.create(daemonSet("kube-proxy", "kube-proxy:v1.36.3"))
	bounded := l.only(nil, rule("apps", "daemonsets", []string{"get"}, name.Name), rule("", "pods", []string{"list", "delete"}))
	own := daemonsets.Pod{Client: bounded, DaemonSet: name}
	before, others := l.pods(name, "node-0"), l.pods(name, "node-1")
	require.Len(t, before, 1)

	m := engine.Machine{Node: "node-0", Attempt: "a-1-1"}
	s := own.Survey(t.Context(), m)
	require.Empty(t, s.Trouble)
	require.Contains(t, before, podNamed(before, kept(t, s).Instance))
	require.Equal(t, "node-0", kept(t, s).Hostname)
	require.Equal(t, "kube-system/kube-proxy", kept(t, s).Pool)
	m.Before = s.Before
	r, err := own.Proven(t.Context(), s.Before)
	require.NoError(t, err)
	require.Contains(t, r.Missing, "the old pod of DaemonSet kube-system/kube-proxy still exists on Node node-0")

	outcome, err := own.Act(t.Context(), m, func() error { return errors.New("a person paused it") })
	require.EqualError(t, err, "a person paused it")
	require.Equal(t, remediations.CallRefused, outcome)
	require.Equal(t, before, l.pods(name, "node-0"), "nothing was deleted")

	outcome, err = own.Act(t.Context(), m, still)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.Eventually(t, func() bool {
		r, err = own.Proven(t.Context(), s.Before)
		return err == nil && r.Missing == ""
	}, 5*time.Minute, 50*time.Millisecond, "the successor is Ready")
	after := l.pods(name, "node-0")
	require.Len(t, after, 1)
	require.NotEqual(t, before[onlyName(before)], after[onlyName(after)])
	require.Equal(t, others, l.pods(name, "node-1"), "the pods of other nodes run on")

	outcome, err = own.Act(t.Context(), m, still)
	require.ErrorContains(t, err, "has changed since the decision: it was already restarted")
	require.Equal(t, remediations.CallRefused, outcome)
	require.Equal(t, after, l.pods(name, "node-0"), "an attempt deletes one pod at most")
	m.Before = ""
	outcome, err = own.Act(t.Context(), m, still)
	require.ErrorContains(t, err, "restarting the pod of DaemonSet kube-system/kube-proxy on Node node-0: the record has no facts from before the step")
	require.Equal(t, remediations.CallRefused, outcome)

	t.Run("a successor that is not Ready is no proof", func(t *testing.T) {
		_, err := l.Client().CoreV1().Pods(name.Namespace).Patch(t.Context(), onlyName(after), types.StrategicMergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		r, err := own.Proven(t.Context(), s.Before)
		require.NoError(t, err)
		require.Contains(t, r.Missing, "the new pod of DaemonSet kube-system/kube-proxy on Node node-0 is not Ready")
	})
}

func podNamed(pods map[string]types.UID, uid string) string {
	for name, u := range pods {
		if string(u) == uid {
			return name
		}
	}
	return ""
}

func onlyName(pods map[string]types.UID) string {
	for name := range pods {
		return name
	}
	return ""
}

// alone makes a DaemonSet that no controller makes pods for.
func alone(t *testing.T, name, image string) *appsv1.DaemonSet {
	t.Helper()
	client := lab.Shared(t).Client()
	_, _ = client.CoreV1().ServiceAccounts("kube-system").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}) // without its controller
	ds, err := client.AppsV1().DaemonSets("kube-system").Create(t.Context(), daemonSet(name, image), metav1.CreateOptions{})
	require.NoError(t, err)
	return ds
}

// podOf makes a pod with the DaemonSet's labels on a node; owned: the DaemonSet owns it.
func podOf(t *testing.T, ds *appsv1.DaemonSet, name, node string, owned bool) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: *ds.Spec.Template.ObjectMeta.DeepCopy(), Spec: *ds.Spec.Template.Spec.DeepCopy()}
	p.Name, p.Spec.NodeName = name, node
	if owned {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
	}
	made, err := lab.Shared(t).Client().CoreV1().Pods(ds.Namespace).Create(t.Context(), p, metav1.CreateOptions{})
	require.NoError(t, err)
	return made
}

// keptBefore is what the record keeps of a restart, in the names that records have had since their
// first version.
type keptBefore struct {
	Instance string `json:"instance"`
	Hostname string `json:"hostname"`
	Pool     string `json:"pool"`
	Count    int    `json:"count"`
}

func kept(t *testing.T, s remediations.Survey) (out keptBefore) {
	t.Helper()
	require.NoError(t, s.Before.Read(&out))
	return out
}

// Without controllers the pods stay as the test makes them.
func TestNoPodOrSeveralAreARefusalThatSaysSo(t *testing.T) {
	client := lab.Shared(t).Client()
	ds := alone(t, "cni", "cni:v1.0.0")
	own := daemonsets.Pod{Client: client, DaemonSet: types.NamespacedName{Namespace: ds.Namespace, Name: ds.Name}}
	refused := func(node, why string) {
		t.Helper()
		m := engine.Machine{Node: node, Before: remediations.Before(fmt.Sprintf(`{"instance":"x","hostname":%q,"pool":"","count":0}`, node))}
		s := own.Survey(t.Context(), m)
		require.Contains(t, s.Trouble, why)
		require.False(t, s.Fleetwide, "it concerns this node alone")
		require.Empty(t, s.Before)
		outcome, err := own.Act(t.Context(), m, func() error { t.Fatal("nothing is about to be done"); return nil })
		require.ErrorContains(t, err, why)
		require.Equal(t, remediations.CallRefused, outcome)
	}
	refused("node-0", "DaemonSet kube-system/cni has no pod on Node node-0")

	podOf(t, ds, "cni-stranger", "node-0", false)
	earlier := ds.DeepCopy()
	earlier.UID = "another"
	podOf(t, earlier, "cni-of-another", "node-0", true)
	refused("node-0", "has no pod on Node node-0")

	first := podOf(t, ds, "cni-a", "node-0", true)
	s := own.Survey(t.Context(), engine.Machine{Node: "node-0"})
	require.Equal(t, string(first.UID), kept(t, s).Instance)
	ended := podOf(t, ds, "cni-ended", "node-0", true)
	ended.Status.Phase = corev1.PodFailed
	_, err := client.CoreV1().Pods(ds.Namespace).UpdateStatus(t.Context(), ended, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Empty(t, own.Survey(t.Context(), engine.Machine{Node: "node-0"}).Trouble, "one that has ended is none")
	podOf(t, ds, "cni-b", "node-0", true)
	refused("node-0", "DaemonSet kube-system/cni has 2 pods on Node node-0")

	going := podOf(t, ds, "cni-c", "node-1", true)
	require.NoError(t, client.CoreV1().Pods(ds.Namespace).Delete(t.Context(), going.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(600))}))
	refused("node-1", "pod kube-system/cni-c of Node node-1 is already being deleted")

	own.DaemonSet.Name = "no-such"
	refused("node-0", "DaemonSet kube-system/no-such does not exist")
}

// If another client changes an object between the look and the call, the call does not touch the
// new state.
func TestOnlyWhatWasLookedAtIsTouched(t *testing.T) {
	client := lab.Shared(t).Client()
	ds := alone(t, "raced", "raced:v1.0.0")
	name := types.NamespacedName{Namespace: ds.Namespace, Name: ds.Name}
	refused := func(a engine.Actuator, m engine.Machine, meanwhile func() error) {
		t.Helper()
		s := a.(engine.Surveyor).Survey(t.Context(), m)
		require.Empty(t, s.Trouble)
		m.Before = s.Before
		outcome, err := a.Act(t.Context(), m, meanwhile)
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.Equal(t, remediations.CallRefused, outcome)
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}

	podOf(t, ds, "raced-a", "node-0", true)
	var successor *corev1.Pod
	refused(daemonsets.Pod{Client: client, DaemonSet: name}, engine.Machine{Node: "node-0"}, func() error {
		require.NoError(t, client.CoreV1().Pods(ds.Namespace).Delete(t.Context(), "raced-a", now))
		successor = podOf(t, ds, "raced-a", "node-0", true)
		return nil
	})
	found, err := client.CoreV1().Pods(ds.Namespace).Get(t.Context(), "raced-a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, successor.UID, found.UID)
	require.Nil(t, found.DeletionTimestamp, "it is another pod, though of the same name")

	ds.Status = appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 1, UpdatedNumberScheduled: 1}
	_, err = client.AppsV1().DaemonSets(ds.Namespace).UpdateStatus(t.Context(), ds, metav1.UpdateOptions{})
	require.NoError(t, err)
	refused(daemonsets.Rollouts{Client: client, Allowed: []types.NamespacedName{name}, Now: time.Now}, engine.Machine{Node: "node-0", DaemonSet: name.String()}, func() error {
		_, err := client.AppsV1().DaemonSets(ds.Namespace).Patch(t.Context(), ds.Name, types.MergePatchType, []byte(`{"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}`), metav1.PatchOptions{})
		return err
	})

	manifest := filepath.Join(t.TempDir(), "raced.yaml")
	text, err := yaml.Marshal(daemonSet("raced", "raced:v1.1.0"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(manifest, text, 0o600))
	refused(daemonsets.CNI{Client: client, File: manifest, DaemonSet: name}, engine.Machine{Node: "node-0"}, func() error {
		_, err := client.AppsV1().DaemonSets(ds.Namespace).Patch(t.Context(), ds.Name, types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"raced","image":"raced:v2.0.0"}]}}}}`), metav1.PatchOptions{})
		return err
	})
	live, err := client.AppsV1().DaemonSets(ds.Namespace).Get(t.Context(), ds.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "raced:v2.0.0", live.Spec.Template.Spec.Containers[0].Image)
}

// Unknown is not zero: an API server that does not answer has not reported that there is no pod.
func TestASilentAPIServerGivesNoFinding(t *testing.T) {
	l := lab.Shared(t)
	unknown := func(client kubernetes.Interface, again time.Duration) {
		t.Helper()
		own := daemonsets.Pod{Client: client, DaemonSet: types.NamespacedName{Namespace: "kube-system", Name: "any"}}
		s := own.Survey(t.Context(), engine.Machine{Node: "node-0"})
		require.True(t, s.Fleetwide, s.Trouble)
		require.Equal(t, again, s.Again)
		require.NotContains(t, s.Trouble, "has no pod")
		_, err := own.Proven(t.Context(), `{"instance":"x","hostname":"node-0","pool":"","count":0}`)
		require.Error(t, err)
	}
	config := l.AdminConfig()
	config.Host, config.TLSClientConfig, config.Timeout = "http://127.0.0.1:1", rest.TLSClientConfig{}, time.Second
	unreachable, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	unknown(unreachable, 30*time.Second)
	stranger, err := l.ClientAs("stranger")
	require.NoError(t, err)
	unknown(stranger, 5*time.Minute)
	_, err = stranger.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "it has no rights")
}
