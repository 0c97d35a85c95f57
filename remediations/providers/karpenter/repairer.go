package karpenter

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations/coverage"
)

// repairsNodes is the feature gate of Karpenter (kubernetes-sigs/karpenter
// pkg/operator/options/options.go).
var repairsNodes = regexp.MustCompile(`(?i)\bNodeRepair=true\b`)

// NodeRepairs are the Deployments of Karpenter whose feature gate NodeRepair is on: each repairs
// the Nodes of all NodePools.
func NodeRepairs(ctx context.Context, api kubernetes.Interface) (out []coverage.Repairer, err error) {
	all, err := api.AppsV1().Deployments("").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=karpenter"})
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
				Advice:  "from Karpenter 1.15 on announce: [karpenter] keeps it away from a node under repair; before, and with --legacy-node-repair, only its feature gate does",
			})
		}
	}
	return out, nil
}
