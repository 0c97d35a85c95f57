package main

import (
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kube"
)

// newWitnesses answer what the watched Nodes do not show of policies' witnesses.
func newWitnesses(actuators map[string]engine.Actuator, clients kubernetes.Interface) map[remediations.SignKind]engine.Witness {
	out := map[remediations.SignKind]engine.Witness{remediations.SignDaemonSetPod: kube.PodWitness{Client: clients}}
	if w, ok := actuators["reboot"].(engine.Witness); ok {
		out[remediations.SignNotRunning] = w
	}
	return out
}
