package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/providers/medik8s"
)

type object = map[string]any

func custom(apiVersion, kind, name string, fields object) *unstructured.Unstructured {
	fields["apiVersion"], fields["kind"] = apiVersion, kind
	if fields["metadata"] == nil {
		fields["metadata"] = object{}
	}
	fields["metadata"].(object)["name"] = name
	if kind != "NodeHealthCheck" {
		fields["metadata"].(object)["namespace"] = "default"
	}
	return &unstructured.Unstructured{Object: fields}
}

func karpenters(gates string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter", Labels: map[string]string{"app.kubernetes.io/name": "karpenter"}},
		Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "FEATURE_GATES", Value: gates}}}}}}},
	}
}

// served are the kinds of other systems that an API server may have.
var served = map[schema.GroupVersionResource]string{
	{Group: "remediation.medik8s.io", Version: "v1alpha1", Resource: "nodehealthchecks"}: "NodeHealthCheckList",
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "machinehealthchecks"}:     "MachineHealthCheckList",
	{Group: "cluster.x-k8s.io", Version: "v1beta1", Resource: "machinehealthchecks"}:     "MachineHealthCheckList",
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "machines"}:                "MachineList",
}

// contested are the Nodes that another system also repairs, by the object that shows it.
func contested(t *testing.T, nodes []*corev1.Node, core []runtime.Object, customs ...runtime.Object) (names map[string][]string, unread []string) {
	t.Helper()
	names = map[string][]string{}
	others, unread := repairersOf(t.Context(), fake.NewClientset(core...), dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), served, customs...))
	for _, o := range others {
		for _, n := range nodes {
			if o.Repairs(n) {
				names[o.Object] = append(names[o.Object], n.Name)
			}
		}
	}
	return names, unread
}

// TestOtherRepairersAreFoundByTheirObjects: a NodeHealthCheck by its selector, a MachineHealthCheck
// by the Machines of its Cluster that it selects, Karpenter by its feature gate. Each has its
// control: paused, on request alone, skipped, of another Cluster, off.
func TestOtherRepairersAreFoundByTheirObjects(t *testing.T) {
	node := func(name string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	nodes := []*corev1.Node{node("w1", map[string]string{"role": "worker"}), node("w2", map[string]string{"role": "worker"}), node("k1", map[string]string{"karpenter.sh/nodepool": "default"})}
	check := func(name string, spec object) *unstructured.Unstructured {
		return custom("remediation.medik8s.io/v1alpha1", "NodeHealthCheck", name, object{"spec": spec})
	}
	workers := object{"matchLabels": object{"role": "worker"}}
	machine := func(name, cluster, node string, annotations object) *unstructured.Unstructured {
		return custom("cluster.x-k8s.io/v1beta2", "Machine", name, object{
			"metadata": object{"labels": object{"role": "worker"}, "annotations": annotations},
			"spec":     object{"clusterName": cluster}, "status": object{"nodeRef": object{"name": node}},
		})
	}
	names, unread := contested(t, nodes, []runtime.Object{karpenters("SpotToSpotConsolidation=false,NodeRepair=true")},
		check("workers", object{"selector": workers}), check("all", object{}), check("paused", object{"selector": workers, "pauseRequests": []any{"upgrade"}}),
		custom("cluster.x-k8s.io/v1beta2", "MachineHealthCheck", "mhc", object{"spec": object{"clusterName": "c", "selector": workers, "checks": object{"unhealthyNodeConditions": []any{object{"type": "Ready", "status": "False"}}}}}),
		custom("cluster.x-k8s.io/v1beta2", "MachineHealthCheck", "on-request", object{"spec": object{"clusterName": "c", "selector": workers}}),
		machine("m1", "c", "w1", nil), machine("m2", "c", "w2", object{"cluster.x-k8s.io/skip-remediation": ""}), machine("m3", "another", "k1", nil), machine("m4", "c", "", nil),
	)
	require.Empty(t, unread)
	require.Equal(t, map[string][]string{
		"NodeHealthCheck workers":        {"w1", "w2"},
		"NodeHealthCheck all":            {"w1", "w2", "k1"},
		"MachineHealthCheck default/mhc": {"w1"},
		"Karpenter (Deployment kube-system/karpenter, feature gate NodeRepair)": {"k1"},
	}, names)

	names, unread = contested(t, nodes, []runtime.Object{karpenters("NodeRepair=false,SpotToSpotConsolidation=true")})
	require.Empty(t, unread)
	require.Empty(t, names, "nothing is installed, or it is off")
}

// TestTheAnnotationStopsKarpentersRepair: the annotation from 1.15 on, but not where Karpenter runs
// the repair of before 1.15, by its flag or its variable.
func TestTheAnnotationStopsKarpentersRepair(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		env    string
		legacy bool
	}{
		"none": {}, "a flag": {args: []string{"--legacy-node-repair"}, legacy: true}, "a flag that says so": {args: []string{"--legacy-node-repair=true"}, legacy: true},
		"a variable": {env: "true", legacy: true}, "a flag that is off": {args: []string{"--legacy-node-repair=false"}}, "a variable that is off": {env: "false"},
	} {
		d := karpenters("NodeRepair=true")
		container := &d.Spec.Template.Spec.Containers[0]
		container.Args, container.Env = c.args, append(container.Env, corev1.EnvVar{Name: "LEGACY_NODE_REPAIR", Value: c.env})
		all, unread := repairersOf(t.Context(), fake.NewClientset(d), dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), served))
		require.Empty(t, unread)
		advice := all[0].Advice
		require.Equal(t, c.legacy, strings.Contains(advice, "with --legacy-node-repair Karpenter reads no annotation"), name)
		require.Equal(t, !c.legacy, strings.Contains(advice, "announce: [karpenter] prevents this"), name)
	}
}

// TestCivosNodeAgentIsFound, unless it only monitors or has no replicas. Velero's Deployment of the
// same name is the other control.
func TestCivosNodeAgentIsFound(t *testing.T) {
	agent := func(namespace string, replicas int32, env ...corev1.EnvVar) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "node-agent"},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: env}}}}},
		}
	}
	node := func(name, providerID string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	}
	nodes := []*corev1.Node{node("w1", "civo://1"), node("w2", "aws:///2")}
	key, only := corev1.EnvVar{Name: "CIVO_API_KEY"}, corev1.EnvVar{Name: "CIVO_NODE_AGENT_MONITOR_ONLY", Value: "true"}
	acts := corev1.EnvVar{Name: only.Name, Value: "false"}
	for name, c := range map[string]struct {
		agent *appsv1.Deployment
		found bool
	}{
		"acts": {agent("kube-system", 1, key, acts), true}, "an old one": {agent("kube-system", 1, key), true}, "monitors": {agent("kube-system", 1, key, only), false},
		"no replicas": {agent("kube-system", 0, key, acts), false}, "Velero's": {agent("velero", 1), false}, "another's": {agent("kube-system", 1), false},
	} {
		names, unread := contested(t, nodes, []runtime.Object{c.agent})
		require.Empty(t, unread)
		if c.found {
			require.Equal(t, map[string][]string{"Civo's node-agent (Deployment kube-system/node-agent)": {"w1"}}, names, name)
		} else {
			require.Empty(t, names, name)
		}
	}
}

// TestWhatIsNotInstalledRepairsNothing: an API server without the kind is an answer. One that
// refuses is not, and check reports that.
func TestWhatIsNotInstalledRepairsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		said int
	}{
		"no such kind": {apierrors.NewNotFound(schema.GroupResource{Group: "cluster.x-k8s.io", Resource: "machinehealthchecks"}, ""), 0},
		"forbidden":    {apierrors.NewForbidden(schema.GroupResource{Group: "cluster.x-k8s.io", Resource: "machinehealthchecks"}, "", nil), 2},
	} {
		t.Run(name, func(t *testing.T) {
			objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), served)
			objects.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
			others, unread := repairersOf(t.Context(), fake.NewClientset(), objects)
			require.Len(t, others, len(coverage.Managed()))
			require.Len(t, unread, c.said)
			for _, text := range unread {
				require.Contains(t, text, " repair the same nodes: listing ")
			}
		})
	}
}

// TestCheckWarnsOfLeasesThatDrydockDoesNotShare: where Medik8s' namespace is there and the
// configuration does not announce to it.
func TestCheckWarnsOfLeasesThatDrydockDoesNotShare(t *testing.T) {
	there := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "medik8s-leases"}})
	said := medik8s.Unshared(t.Context(), there, false)
	require.Len(t, said, 1)
	require.Contains(t, said[0], "the namespace medik8s-leases exists")
	require.Contains(t, said[0], "write announce: [medik8s]")
	require.Empty(t, medik8s.Unshared(t.Context(), there, true), "it takes part")
	require.Empty(t, medik8s.Unshared(t.Context(), fake.NewClientset(), false), "there is nobody to share with")

	there.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "medik8s-leases", nil)
	})
	said = medik8s.Unshared(t.Context(), there, false)
	require.Len(t, said, 1)
	require.Contains(t, said[0], "could not check whether Medik8s' operators use Leases")
}

// TestCheckLooksIntoTheManagementCluster: check finds MachineHealthChecks elsewhere with Drydock's
// rights there, which cover one namespace. It ignores those of another Cluster, whose Nodes may
// have the same names. If it cannot read them, check says so.
func TestCheckLooksIntoTheManagementCluster(t *testing.T) {
	check := func(name, cluster string) *unstructured.Unstructured {
		return custom("cluster.x-k8s.io/v1beta2", "MachineHealthCheck", name, object{"spec": object{
			"clusterName": cluster, "selector": object{}, "checks": object{"unhealthyNodeConditions": []any{object{"type": "Ready", "status": "False"}}},
		}})
	}
	machine := func(name, cluster string) *unstructured.Unstructured {
		return custom("cluster.x-k8s.io/v1beta2", "Machine", name, object{"spec": object{"clusterName": cluster}, "status": object{"nodeRef": object{"name": "w1"}}})
	}
	lists := map[string][]*unstructured.Unstructured{"machinehealthchecks": {check("mhc", "prod-1"), check("other", "prod-2")}, "machines": {machine("m1", "prod-1"), machine("m2", "prod-2")}}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resource, mine := strings.CutPrefix(r.URL.Path, "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/")
		w.Header().Set("Content-Type", "application/json")
		if !mine {
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(apierrors.NewForbidden(schema.GroupResource{}, "", nil).ErrStatus)
			return
		}
		_ = json.NewEncoder(w).Encode(object{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "List", "metadata": object{}, "items": lists[resource]})
	}))
	t.Cleanup(api.Close)
	kubeconfig := write(t, "management.yaml", "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: \""+api.URL+
		"\"}}]\nusers: [{name: x, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n")
	in := func(cluster string) *config.Config {
		file := write(t, "drydock.yaml", sound+"providers: {clusterAPI: {cluster: "+cluster+", kubeconfig: "+kubeconfig+"}}\n")
		cfg, _, err := config.Load(file, config.Options{})
		require.NoError(t, err)
		return cfg
	}
	all, unread := repairersElsewhere(t.Context(), in("default/prod-1"), "")
	require.Empty(t, unread)
	require.Len(t, all, 1)
	require.Equal(t, "MachineHealthCheck default/mhc", all[0].Object)
	require.True(t, all[0].Repairs(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}))
	require.False(t, all[0].Repairs(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w2"}}))

	all, unread = repairersElsewhere(t.Context(), in("capi/prod-1"), "")
	require.Empty(t, all)
	require.Len(t, unread, 1)
	require.Contains(t, unread[0], "repair the same nodes: listing machinehealthchecks.cluster.x-k8s.io: ")

	gone := kubeconfig + "-gone"
	all, unread = repairersElsewhere(t.Context(), in("default/prod-1"), gone)
	require.Empty(t, all)
	require.Len(t, unread, 1)
	require.Contains(t, unread[0], "it is unknown whether MachineHealthChecks of the management cluster repair the same nodes: reading the kubeconfig "+gone)
	require.Contains(t, unread[0], "--management-kubeconfig")

	here, _, err := config.Load(write(t, "here.yaml", sound+"providers: {clusterAPI: {cluster: default/prod-1}}\n"), config.Options{})
	require.NoError(t, err)
	all, unread = repairersElsewhere(t.Context(), here, gone)
	require.Empty(t, all, "the management cluster is this one, which is looked at anyway")
	require.Empty(t, unread)
}
