package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/internal/config"
	clusterapisettings "drydock.dev/drydock/remediations/clusterapi/settings"
	"drydock.dev/drydock/remediations/coverage"
)

// lookers find the other systems that the cluster's objects show. What is not installed is none.
var lookers = []struct {
	what string
	find func(context.Context, kubernetes.Interface, dynamic.Interface) ([]coverage.Repairer, error)
}{
	{"NodeHealthChecks of Medik8s", nodeHealthChecks},
	{"MachineHealthChecks of Cluster API", func(ctx context.Context, _ kubernetes.Interface, objects dynamic.Interface) ([]coverage.Repairer, error) {
		return machineHealthChecks(ctx, objects, types.NamespacedName{})
	}},
	{"Karpenter's own node repair", karpentersRepair},
}

// repairersOf are the other systems that repair nodes of the cluster, and a sentence about each kind that could not be read.
func repairersOf(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface) (all []coverage.Repairer, unread []string) {
	for _, l := range lookers {
		found, err := l.find(ctx, client, objects)
		if err != nil {
			unread = append(unread, fmt.Sprintf("whether %s repair the same nodes is not known: %v", l.what, err))
		}
		all = append(all, found...)
	}
	return append(all, coverage.Managed()...), unread
}

// repairersElsewhere are the MachineHealthChecks of a management cluster elsewhere, and a sentence where they could not be read. The
// configuration names its kubeconfig as Drydock's pod has it, so a person may give another file.
func repairersElsewhere(ctx context.Context, cfg *config.Config, kubeconfig string) (all []coverage.Repairer, unread []string) {
	c, ok := config.Of[*clusterapisettings.ClusterAPI](cfg)
	if !ok || c.Kubeconfig == "" {
		return nil, nil
	}
	all, err := healthChecksElsewhere(ctx, cmp.Or(kubeconfig, c.Kubeconfig), c.Cluster)
	if err != nil {
		unread = []string{fmt.Sprintf("whether MachineHealthChecks of the management cluster repair the same nodes is not known: %v; name a kubeconfig of it with --management-kubeconfig", err)}
	}
	return all, unread
}

func healthChecksElsewhere(ctx context.Context, kubeconfig string, cluster types.NamespacedName) ([]coverage.Repairer, error) {
	to, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	to.Timeout = readNodesWithin
	objects, err := dynamic.NewForConfig(to)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	return machineHealthChecks(ctx, objects, cluster)
}

// listAny lists the objects in the first of the versions that the API server has; none has it: there are none.
func listAny(ctx context.Context, objects dynamic.Interface, namespace, group, resource string, versions ...string) ([]unstructured.Unstructured, error) {
	for _, v := range versions {
		list, err := objects.Resource(schema.GroupVersionResource{Group: group, Version: v, Resource: resource}).Namespace(namespace).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("listing %s.%s: %w", resource, group, err)
		}
		return list.Items, nil
	}
	return nil, nil
}

// selectorOf reads a label selector of the object. One that is not there, or is empty, selects everything.
func selectorOf(o unstructured.Unstructured, fields ...string) (labels.Selector, error) {
	raw, _, err := unstructured.NestedMap(o.Object, fields...)
	if err != nil {
		return nil, err
	}
	var s metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&s)
}

// nodeHealthChecks are those of Medik8s that are not paused (medik8s/node-healthcheck-operator api/v1alpha1/nodehealthcheck_types.go).
func nodeHealthChecks(ctx context.Context, _ kubernetes.Interface, objects dynamic.Interface) (out []coverage.Repairer, err error) {
	all, err := listAny(ctx, objects, "", "remediation.medik8s.io", "nodehealthchecks", "v1alpha1")
	for _, o := range all {
		if paused, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "pauseRequests"); len(paused) > 0 {
			continue
		}
		selector, err := selectorOf(o, "spec", "selector")
		if err != nil {
			return out, fmt.Errorf("the selector of NodeHealthCheck %s: %w", o.GetName(), err)
		}
		out = append(out, coverage.Repairer{
			Object:  "NodeHealthCheck " + o.GetName(),
			Repairs: func(n *corev1.Node) bool { return selector.Matches(labels.Set(n.Labels)) },
		})
	}
	return out, err
}

// findsIllness are where a MachineHealthCheck has conditions of its own. One without any acts on Drydock's requests alone.
var findsIllness = [][]string{{"spec", "checks", "unhealthyNodeConditions"}, {"spec", "checks", "unhealthyMachineConditions"}, {"spec", "unhealthyConditions"}}

// machineHealthChecks are those of Cluster API that find nodes ill by themselves: each repairs the Nodes of the Machines of its Cluster
// that it selects (kubernetes-sigs/cluster-api api/core/v1beta2/machinehealthcheck_types.go). Where a Cluster is named only its own
// count: a management cluster has others, whose Nodes may have the same names.
func machineHealthChecks(ctx context.Context, objects dynamic.Interface, of types.NamespacedName) (out []coverage.Repairer, err error) {
	const group = "cluster.x-k8s.io"
	checks, err := listAny(ctx, objects, of.Namespace, group, "machinehealthchecks", "v1beta2", "v1beta1")
	if err != nil || len(checks) == 0 {
		return nil, err
	}
	machines, err := listAny(ctx, objects, of.Namespace, group, "machines", "v1beta2", "v1beta1")
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
		selector, err := selectorOf(o, "spec", "selector")
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
			_, skipped := m.GetAnnotations()["cluster.x-k8s.io/skip-remediation"]
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

// repairsNodes is the feature gate of Karpenter (kubernetes-sigs/karpenter pkg/operator/options/options.go).
var repairsNodes = regexp.MustCompile(`(?i)\bNodeRepair=true\b`)

// karpentersRepair is the Deployment of Karpenter whose feature gate NodeRepair is on: it repairs the Nodes of all NodePools.
func karpentersRepair(ctx context.Context, client kubernetes.Interface, _ dynamic.Interface) (out []coverage.Repairer, err error) {
	all, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=karpenter"})
	if err != nil {
		return nil, fmt.Errorf("listing the Deployments: %w", err)
	}
	for _, d := range all.Items {
		on := slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Args, repairsNodes.MatchString) || slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
				return e.Name == "FEATURE_GATES" && repairsNodes.MatchString(e.Value)
			})
		})
		if on {
			out = append(out, coverage.Repairer{
				Object:  fmt.Sprintf("Karpenter (Deployment %s/%s, feature gate NodeRepair)", d.Namespace, d.Name),
				Repairs: func(n *corev1.Node) bool { return n.Labels["karpenter.sh/nodepool"] != "" },
			})
		}
	}
	return out, nil
}
