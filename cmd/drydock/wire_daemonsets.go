package main

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kube"
)

// addDaemonSets adds the remediations that go by way of DaemonSets, as far as the configuration has them.
func addDaemonSets(actuators map[string]engine.Actuator, cfg *config.Config, clients kubernetes.Interface) {
	for step, name := range map[string]config.ObjectName{"restart-kube-proxy": cfg.DaemonSets.KubeProxy, "restart-cni": cfg.DaemonSets.CNI} {
		if name.Name != "" {
			actuators[step] = kube.DaemonSetPod{Client: clients, DaemonSet: types.NamespacedName(name)}
		}
	}
	wide := cfg.ClusterWide
	if wide == nil {
		return
	}
	if len(wide.RolloutRestart) > 0 {
		rollouts := kube.Rollouts{Client: clients, Now: time.Now}
		for _, name := range wide.RolloutRestart {
			rollouts.Allowed = append(rollouts.Allowed, types.NamespacedName(name))
		}
		actuators["rollout-restart"] = rollouts
	}
	if c := wide.CNI; c != nil {
		actuators["apply-cni"] = kube.CNI{
			Client: clients, File: c.File, ConfigMap: types.NamespacedName(c.ConfigMap), Key: c.ConfigMapKey, DaemonSet: types.NamespacedName(c.DaemonSet),
		}
	}
}
