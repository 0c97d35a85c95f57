package medik8s

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"

	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/providers/kit"
)

// NodeHealthChecks returns Medik8s' NodeHealthChecks that are not paused
// (medik8s/node-healthcheck-operator api/v1alpha1/nodehealthcheck_types.go).
func NodeHealthChecks(ctx context.Context, api dynamic.Interface) (out []coverage.Repairer, err error) {
	all, err := kit.List(ctx, api, "", "remediation.medik8s.io", "nodehealthchecks", "v1alpha1")
	for _, o := range all {
		if paused, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "pauseRequests"); len(paused) > 0 {
			continue
		}
		selector, err := kit.Selector(o, "spec", "selector")
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
