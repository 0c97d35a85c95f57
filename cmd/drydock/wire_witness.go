package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/civo"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kube"
)

// newWitnesses answer what the watched Nodes do not show of policies' witnesses.
func newWitnesses(actuators map[string]engine.Actuator, clients kubernetes.Interface) map[remediations.SignKind]engine.Witness {
	out := map[remediations.SignKind]engine.Witness{remediations.SignDaemonSetPod: kube.PodWitness{Client: clients}}
	if reboot, ok := actuators["reboot"].(civoReboot); ok {
		out[remediations.SignNotRunning] = civoWitness(reboot)
	}
	return out
}

// civoWitness says whether the machine's instance runs.
type civoWitness struct{ client *civo.Client }

// Testify asks for the instance's status. One that Civo is building or deleting, or whose status this version does not know,
// shows nothing.
func (c civoWitness) Testify(ctx context.Context, m engine.Machine, _ remediations.Sign) remediations.Testimony {
	in, err := c.client.Find(ctx, civoMachine(m))
	if err != nil {
		return remediations.Testimony{Answer: remediations.Unknown, Saw: "Civo did not say whether the instance runs: " + err.Error()}
	}
	t := remediations.Testimony{Answer: remediations.Unknown, Saw: fmt.Sprintf("Civo says that the instance is %.40q", in.Status)}
	switch in.Runs() {
	case civo.Running:
		t.Answer = remediations.Well
	case civo.Stopped:
		t.Answer = remediations.Ill
	case civo.Between:
	}
	return t
}
