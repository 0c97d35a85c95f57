package karpenter

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations/coverage"
)

// repairsNodes matches Karpenter's feature gate NodeRepair (kubernetes-sigs/karpenter
// pkg/operator/options/options.go).
var repairsNodes = regexp.MustCompile(`(?i)\bNodeRepair=true\b`)

// legacyFlag switches on the node repair of versions before 1.15, which ignores the annotations
// that forbid a repair. The environment variable LEGACY_NODE_REPAIR has the same effect (source:
// the same file of Karpenter).
var legacyFlag = regexp.MustCompile(`^--?legacy-node-repair(?:=(.+))?$`)

// NodeRepairs returns the Deployments of Karpenter that repair nodes by themselves (feature gate
// NodeRepair).
func NodeRepairs(ctx context.Context, api kubernetes.Interface) (out []coverage.Repairer, err error) {
	all, err := api.AppsV1().Deployments("").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=karpenter"})
	if err != nil {
		return nil, fmt.Errorf("listing the Deployments: %w", err)
	}
	for _, d := range all.Items {
		containers := d.Spec.Template.Spec.Containers
		if !slices.ContainsFunc(containers, repairs) {
			continue
		}
		advice := "with Karpenter 1.15 or later, announce: [karpenter] prevents this for a node under repair; before 1.15, switch the feature gate off"
		if slices.ContainsFunc(containers, legacy) {
			advice = "with --legacy-node-repair Karpenter reads no annotation, so switch the feature gate off"
		}
		out = append(out, coverage.Repairer{
			Object:  fmt.Sprintf("Karpenter (Deployment %s/%s, feature gate NodeRepair)", d.Namespace, d.Name),
			Repairs: func(n *corev1.Node) bool { return n.Labels["karpenter.sh/nodepool"] != "" },
			Advice:  advice,
		})
	}
	return out, nil
}

func repairs(c corev1.Container) bool {
	return slices.ContainsFunc(c.Args, repairsNodes.MatchString) || slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		return e.Name == "FEATURE_GATES" && repairsNodes.MatchString(e.Value)
	})
}

func legacy(c corev1.Container) bool {
	on := func(value string) bool { set, err := strconv.ParseBool(value); return err == nil && set }
	return slices.ContainsFunc(c.Args, func(arg string) bool {
		found := legacyFlag.FindStringSubmatch(arg)
		return found != nil && (found[1] == "" || on(found[1]))
	}) || slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "LEGACY_NODE_REPAIR" && on(e.Value) })
}
