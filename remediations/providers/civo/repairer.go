package civo

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations/coverage"
)

// Names of the Deployment of Civo's node-agent, and of the environment variables that configure it
// (civo/node-agent charts/templates/deployment.yaml). Velero may also run a Deployment with the
// name node-agent, but without these variables.
const (
	nodeAgent            = "node-agent"
	nodeAgentNamespace   = "kube-system"
	nodeAgentEnvironment = "CIVO_"
	nodeAgentMonitorOnly = "CIVO_NODE_AGENT_MONITOR_ONLY"
)

// NodeAgents returns the Deployments of Civo's node-agent that reboot nodes.
func NodeAgents(ctx context.Context, api kubernetes.Interface) (out []coverage.Repairer, err error) {
	all, err := api.AppsV1().Deployments(nodeAgentNamespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + nodeAgent})
	if err != nil {
		return nil, fmt.Errorf("listing the Deployments: %w", err)
	}
	for _, d := range all.Items {
		if d.Name != nodeAgent || d.Spec.Replicas != nil && *d.Spec.Replicas == 0 || !slices.ContainsFunc(d.Spec.Template.Spec.Containers, reboots) {
			continue
		}
		out = append(out, coverage.Repairer{
			Object:  fmt.Sprintf("Civo's node-agent (Deployment %s/%s)", d.Namespace, d.Name),
			Repairs: func(n *corev1.Node) bool { return strings.HasPrefix(n.Spec.ProviderID, "civo://") },
		})
	}
	return out, nil
}

func reboots(c corev1.Container) bool {
	civos := slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return strings.HasPrefix(e.Name, nodeAgentEnvironment) })
	return civos && !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		only, err := strconv.ParseBool(e.Value)
		return e.Name == nodeAgentMonitorOnly && err == nil && only
	})
}
