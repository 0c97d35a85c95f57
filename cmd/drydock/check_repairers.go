package main

import (
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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations"
)

// lookers find the other systems that the cluster's objects show. What is not installed is none.
var lookers = []struct {
	what string
	find func(context.Context, kubernetes.Interface, dynamic.Interface) ([]remediations.Repairer, error)
}{
	{"NodeHealthChecks of Medik8s", nodeHealthChecks},
	{"MachineHealthChecks of Cluster API", machineHealthChecks},
	{"Karpenter's own node repair", karpentersRepair},
}

// repairersOf are the other systems that repair nodes of the cluster, and a sentence about each kind that could not be read.
func repairersOf(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface) (all []remediations.Repairer, unread []string) {
	for _, l := range lookers {
		found, err := l.find(ctx, client, objects)
		if err != nil {
			unread = append(unread, fmt.Sprintf("whether %s repair the same nodes is not known: %v", l.what, err))
		}
		all = append(all, found...)
	}
	return append(all, remediations.ManagedRepairers()...), unread
}

// listAny lists the objects in the first of the versions that the API server has; none has it: there are none.
func listAny(ctx context.Context, objects dynamic.Interface, group, resource string, versions ...string) ([]unstructured.Unstructured, error) {
	for _, v := range versions {
		list, err := objects.Resource(schema.GroupVersionResource{Group: group, Version: v, Resource: resource}).List(ctx, metav1.ListOptions{})
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
func nodeHealthChecks(ctx context.Context, _ kubernetes.Interface, objects dynamic.Interface) (out []remediations.Repairer, err error) {
	all, err := listAny(ctx, objects, "remediation.medik8s.io", "nodehealthchecks", "v1alpha1")
	for _, o := range all {
		if paused, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "pauseRequests"); len(paused) > 0 {
			continue
		}
		selector, err := selectorOf(o, "spec", "selector")
		if err != nil {
			return out, fmt.Errorf("the selector of NodeHealthCheck %s: %w", o.GetName(), err)
		}
		out = append(out, remediations.Repairer{
			Object:  "NodeHealthCheck " + o.GetName(),
			Repairs: func(n *corev1.Node) bool { return selector.Matches(labels.Set(n.Labels)) },
		})
	}
	return out, err
}

// findsIllness are where a MachineHealthCheck has conditions of its own. One without any acts on Drydock's requests alone.
var findsIllness = [][]string{{"spec", "checks", "unhealthyNodeConditions"}, {"spec", "checks", "unhealthyMachineConditions"}, {"spec", "unhealthyConditions"}}

// machineHealthChecks are those of Cluster API in this cluster that find nodes ill by themselves: each repairs the Nodes of the Machines of
// its Cluster that it selects (kubernetes-sigs/cluster-api api/core/v1beta2/machinehealthcheck_types.go).
func machineHealthChecks(ctx context.Context, _ kubernetes.Interface, objects dynamic.Interface) (out []remediations.Repairer, err error) {
	const group = "cluster.x-k8s.io"
	checks, err := listAny(ctx, objects, group, "machinehealthchecks", "v1beta2", "v1beta1")
	if err != nil || len(checks) == 0 {
		return nil, err
	}
	machines, err := listAny(ctx, objects, group, "machines", "v1beta2", "v1beta1")
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
		var nodes []string
		for _, m := range machines {
			of, _, _ := unstructured.NestedString(m.Object, "spec", "clusterName")
			_, skipped := m.GetAnnotations()["cluster.x-k8s.io/skip-remediation"]
			if node, _, _ := unstructured.NestedString(m.Object, "status", "nodeRef", "name"); m.GetNamespace() == o.GetNamespace() && of == cluster && !skipped && selector.Matches(labels.Set(m.GetLabels())) {
				nodes = append(nodes, node)
			}
		}
		out = append(out, remediations.Repairer{
			Object:  fmt.Sprintf("MachineHealthCheck %s/%s", o.GetNamespace(), o.GetName()),
			Repairs: func(n *corev1.Node) bool { return slices.Contains(nodes, n.Name) },
		})
	}
	return out, nil
}

// repairsNodes is the feature gate of Karpenter (kubernetes-sigs/karpenter pkg/operator/options/options.go).
var repairsNodes = regexp.MustCompile(`(?i)\bNodeRepair=true\b`)

// karpentersRepair is the Deployment of Karpenter whose feature gate NodeRepair is on: it repairs the Nodes of all NodePools.
func karpentersRepair(ctx context.Context, client kubernetes.Interface, _ dynamic.Interface) (out []remediations.Repairer, err error) {
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
			out = append(out, remediations.Repairer{
				Object:  fmt.Sprintf("Karpenter (Deployment %s/%s, feature gate NodeRepair)", d.Namespace, d.Name),
				Repairs: func(n *corev1.Node) bool { return n.Labels["karpenter.sh/nodepool"] != "" },
			})
		}
	}
	return out, nil
}
