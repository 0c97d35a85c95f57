package clusterapi

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// If these fields are empty, a MachineHealthCheck acts only on Drydock's requests.
var findsIllness = [][]string{{"spec", "checks", "unhealthyNodeConditions"}, {"spec", "checks", "unhealthyMachineConditions"}, {"spec", "unhealthyConditions"}}

// MachineHealthChecks returns the MachineHealthChecks that detect unhealthy nodes by themselves
// (kubernetes-sigs/cluster-api api/core/v1beta2/machinehealthcheck_types.go). The parameter of
// selects one Cluster, because the Nodes of different Clusters may have equal names. An empty name
// means all Clusters.
func MachineHealthChecks(ctx context.Context, api dynamic.Interface, of types.NamespacedName) (out []coverage.Repairer, err error) {
	const group = "cluster.x-k8s.io"
	checks, err := kit.List(ctx, api, of.Namespace, group, "machinehealthchecks", "v1beta2", "v1beta1")
	if err != nil || len(checks) == 0 {
		return nil, err
	}
	machines, err := kit.List(ctx, api, of.Namespace, group, "machines", "v1beta2", "v1beta1")
	if err != nil {
		return nil, err
	}
	for _, o := range checks {
		if !slices.ContainsFunc(findsIllness, func(fields []string) bool {
			conditions, _, _ := unstructured.NestedSlice(o.Object, fields...)
			return len(conditions) > 0
		}) {
			continue
		}
		selector, err := kit.Selector(o, "spec", "selector")
		if err != nil {
			return out, fmt.Errorf("the selector of MachineHealthCheck %s/%s: %w", o.GetNamespace(), o.GetName(), err)
		}
		cluster, _, _ := unstructured.NestedString(o.Object, "spec", "clusterName")
		if of.Name != "" && cluster != of.Name {
			continue
		}
		nodes := map[string]bool{}
		for _, m := range machines {
			its, _, _ := unstructured.NestedString(m.Object, "spec", "clusterName")
			_, skipped := m.GetAnnotations()[skipKey]
			if node, _, _ := unstructured.NestedString(m.Object, "status", "nodeRef", "name"); m.GetNamespace() == o.GetNamespace() && its == cluster && !skipped && selector.Matches(labels.Set(m.GetLabels())) {
				nodes[node] = true
			}
		}
		out = append(out, coverage.Repairer{
			Object:  fmt.Sprintf("MachineHealthCheck %s/%s", o.GetNamespace(), o.GetName()),
			Repairs: func(n *corev1.Node) bool { return nodes[n.Name] },
		})
	}
	return out, nil
}

// MachineHealthChecksElsewhere is like MachineHealthChecks, for the management cluster in the file
// kubeconfig. timeout limits each request.
func MachineHealthChecksElsewhere(ctx context.Context, kubeconfig string, of types.NamespacedName, timeout time.Duration) ([]coverage.Repairer, error) {
	to, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	if _, err := kubeapi.Address(to); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	to.Timeout = timeout
	api, err := dynamic.NewForConfig(to)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	return MachineHealthChecks(ctx, api, of)
}
