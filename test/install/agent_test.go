package install

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
)

// one is the value that installs the mesh's agent.
var one = m{"agent": m{"enabled": true}}

// TestOneValueInstallsTheAgent: one value runs the agent on every node, without any privilege, and
// makes Drydock observe the mesh.
func TestOneValueInstallsTheAgent(t *testing.T) {
	for name, text := range render(t, "drydock", nil) {
		require.NotContains(t, text, "drydock-agent", "%s: nobody asked for it", name)
	}
	manifests := render(t, "drydock", one)
	var ds appsv1.DaemonSet
	find(t, objects(t, manifests), "DaemonSet", "drydock-agent", &ds)
	spec := ds.Spec.Template.Spec
	require.Equal(t, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, spec.Tolerations, "of a node without it nothing is known")
	require.Empty(t, spec.NodeSelector)
	require.Equal(t, "system-node-critical", spec.PriorityClassName)
	require.False(t, spec.HostNetwork || spec.HostPID || spec.HostIPC)
	c := spec.Containers[0]
	require.Equal(t, []string{"/drydock-agent"}, c.Command)
	require.Contains(t, c.Args, "--topology-label=topology.kubernetes.io/region")
	require.Empty(t, c.SecurityContext.Capabilities.Add)
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	for _, p := range c.Ports {
		require.Zero(t, p.HostPort)
	}
	var key corev1.Secret
	find(t, objects(t, manifests), "Secret", spec.Volumes[0].Secret.SecretName, &key)
	require.Empty(t, key.Data, "Drydock generates it")
	require.Nil(t, spec.Volumes[0].Secret.Optional, "the kubelet starts an agent when the key is there")
	require.Contains(t, c.Args, "--key-file="+c.VolumeMounts[0].MountPath+"/"+spec.Volumes[0].Secret.Items[0].Path)
	var s corev1.Service
	find(t, objects(t, manifests), "Service", "drydock-agent", &s)
	require.Contains(t, c.Args, "--service="+s.Name, "it finds its peers by the EndpointSlices of that")
	require.Equal(t, corev1.ClusterIPNone, s.Spec.ClusterIP)
	require.True(t, labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(ds.Spec.Template.Labels)))

	text, err := lab.RenderedConfig(manifests)
	require.NoError(t, err)
	require.Contains(t, string(text), "providers:\n  kilo:\n    job: drydock-agent|.+[-/]drydock-agent\n    keySecret:\n      key: "+spec.Volumes[0].Secret.Items[0].Key+"\n      name: "+key.Name+"\n")
	text, err = lab.RenderedConfig(render(t, "drydock", nil))
	require.NoError(t, err)
	require.NotContains(t, string(text), "kilo")
}

// TestTheAgentsPodsAreNotReplicas: the agents' pods receive no alerts, are not in Drydock's
// PodDisruptionBudget, and do not count when Drydock's pods are spread.
func TestTheAgentsPodsAreNotReplicas(t *testing.T) {
	all := objects(t, render(t, "drydock", one))
	var ds appsv1.DaemonSet
	find(t, all, "DaemonSet", "drydock-agent", &ds)
	var d appsv1.Deployment
	find(t, all, "Deployment", "drydock", &d)
	agents := 0
	for _, o := range all {
		spec, _ := o.Object["spec"].(map[string]any)
		for _, at := range []string{"selector", "podSelector"} {
			selector, _ := spec[at].(map[string]any)
			if within, ok := selector["matchLabels"].(map[string]any); ok {
				selector = within
			}
			if len(selector) == 0 {
				continue
			}
			set := labels.Set{}
			for k, v := range selector {
				set[k], _ = v.(string)
			}
			if o.GetKind() == "ServiceMonitor" {
				delete(set, "app.kubernetes.io/component") // the agents' Services select by it
			}
			of := labels.SelectorFromSet(set)
			agent, drydock := of.Matches(labels.Set(ds.Spec.Template.Labels)), of.Matches(labels.Set(d.Spec.Template.Labels))
			require.False(t, agent && drydock, "%s %s", o.GetKind(), o.GetName())
			if agent {
				agents++
			}
		}
	}
	require.Equal(t, 3, agents, "its DaemonSet, its Service and its NetworkPolicy")
}

// TestTheAgentFollowsTheConfiguration in all settings that must be the same for the agent and for
// Drydock.
func TestTheAgentFollowsTheConfiguration(t *testing.T) {
	var ds appsv1.DaemonSet
	find(t, objects(t, render(t, "mesh", variants(t)["mesh"])), "DaemonSet", "mesh-agent", &ds)
	require.Contains(t, ds.Spec.Template.Spec.Containers[0].Args, "--topology-label=topology.kubernetes.io/zone")

	var other appsv1.DaemonSet
	find(t, objects(t, render(t, "everything", variants(t)["everything"])), "DaemonSet", "dock-agent", &other)
	c := other.Spec.Template.Spec.Containers[0]
	require.True(t, strings.HasPrefix(c.Image, "mirror/drydock-agent@sha256:"))
	require.Empty(t, c.Command, "an image of its own has it as its entrypoint")
	require.Contains(t, c.Args, "--listen=:19099")
	require.Equal(t, "dock-mesh", other.Spec.Template.Spec.Volumes[0].Secret.SecretName)

	var policy networkingv1.NetworkPolicy
	find(t, objects(t, render(t, "everything", variants(t)["everything"])), "NetworkPolicy", "dock-agent", &policy)
	require.Len(t, policy.Spec.Ingress, 2)
	require.Empty(t, policy.Spec.Ingress[0].From, "a mesh may rewrite addresses")
	require.NotEmpty(t, policy.Spec.Ingress[1].From, "who may read the metrics")
	require.Len(t, policy.Spec.Ingress[0].Ports, 2, "TCP and UDP")
}

// TestRightsOfTheAgent: it may read Nodes, and the addresses in its own namespace. It may write
// nothing.
func TestRightsOfTheAgent(t *testing.T) {
	all := objects(t, render(t, "drydock", one))
	var everywhere rbacv1.ClusterRole
	find(t, all, "ClusterRole", "drydock-agent", &everywhere)
	require.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}}}, everywhere.Rules)
	var own rbacv1.Role
	find(t, all, "Role", "drydock-agent", &own)
	require.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"get", "list", "watch"}}}, own.Rules)

	l := cluster(t)
	const release = "probing"
	namespace(t, l, release)
	apply(t, l, release, render(t, release, one))
	agent, err := l.ClientAs("system:serviceaccount:"+release+":"+release+"-agent", "system:serviceaccounts", "system:authenticated")
	require.NoError(t, err)
	await(t, "the rights", func() bool {
		_, nodes := agent.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		_, slices := agent.DiscoveryV1().EndpointSlices(release).List(t.Context(), metav1.ListOptions{})
		return nodes == nil && slices == nil
	})
	_, err = agent.CoreV1().Nodes().Patch(t.Context(), "node-0", types.MergePatchType, []byte(`{"metadata":{"annotations":{"kilo.squat.ai/leader":"true"}}}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = agent.DiscoveryV1().EndpointSlices("default").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = agent.CoreV1().Secrets(release).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	drydock, err := l.ClientAs("system:serviceaccount:"+release+":"+release, "system:serviceaccounts", "system:authenticated")
	require.NoError(t, err)
	await(t, "Drydock's right to move a leader", func() bool {
		_, err := drydock.CoreV1().Nodes().Patch(t.Context(), "node-0", types.MergePatchType, []byte(`{"metadata":{"annotations":{"kilo.squat.ai/leader":"drydock"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil
	})
}
