package external

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Names in OpenShift's Machine API. A MachineDeletionRemediation deletes the machine through it.
const (
	machineVersion = "machine.openshift.io/v1beta1"
	machines       = "openshift-machine-api"
	// machineKey is the Node's annotation with the Machine (namespace/name) that the remediator
	// deletes. A kubelet can forge it, so it is compared with the Machine.
	machineKey = "machine.openshift.io/machine"
	phaseKey   = "machine.openshift.io/instance-state"
)

type sight struct {
	machine *kubeapi.Machine
	set     kubeapi.MachineSet
	owned   []kubeapi.Machine // the MachineSet's Machines, this one included
}

func (c *Client) machines() *kubeapi.Client {
	return c.core.In(machineVersion, machines, "MachineDeletionRemediation needs OpenShift's Machine API")
}

func (c *Client) listMachines(ctx context.Context) ([]kubeapi.Machine, error) {
	return kubeapi.List[kubeapi.Machine](ctx, c.machines(), "machines", "Machine", nil)
}

// machineOf returns the Machine that the remediator would delete.
func (c *Client) machineOf(ctx context.Context, n *corev1.Node) (*sight, error) {
	all, err := c.listMachines(ctx)
	if err != nil {
		return nil, err
	}
	s := &sight{}
	if s.machine, err = c.core.PickMachine(all, n.Name, n.Spec.ProviderID); errors.Is(err, kubeapi.ErrNotFound) {
		return nil, kit.Refuse(kit.Machine, "no Machine in namespace %s has the Node in status.nodeRef or has its spec.providerID", machines)
	} else if err != nil {
		return nil, err
	}
	one := s.machine
	owner := metav1.GetControllerOf(one)
	switch {
	case n.Spec.ProviderID == "":
		return nil, kit.Refuse(kit.Machine, "the Node has no spec.providerID, so its machine cannot be identified")
	case n.Annotations[machineKey] != machines+"/"+one.Name:
		return nil, kit.Refuse(kit.Machine, "the Node's annotation %s is %s, but its Machine is %s/%s, so the remediator would delete another Machine", machineKey, c.core.Quote(n.Annotations[machineKey]), machines, one.Name)
	case one.DeletionTimestamp != nil:
		return nil, kit.Refuse(kit.While, "Machine %s is already being deleted", one.Name)
	case owner == nil || owner.Kind != "MachineSet":
		return nil, kit.Refuse(kit.Machine, "Machine %s does not belong to a MachineSet, so no new Machine would be made", one.Name)
	}
	err = c.machines().Get(ctx, "machinesets/"+owner.Name, "MachineSet", &s.set)
	switch {
	case errors.Is(err, kubeapi.ErrNotFound) || err == nil && s.set.UID != owner.UID:
		return nil, kit.Refuse(kit.Machine, "MachineSet %s, the owner of Machine %s, no longer exists", owner.Name, one.Name)
	case err != nil:
		return nil, err
	case s.set.DeletionTimestamp != nil:
		return nil, kit.Refuse(kit.Machine, "MachineSet %s is being deleted, so it would make no new Machine", owner.Name)
	case s.set.Status.Replicas > s.set.Wanted():
		return nil, kit.Refuse(kit.While, "MachineSet %s has %d Machines and should have %d, so it would make no new one", owner.Name, s.set.Status.Replicas, s.set.Wanted())
	}
	s.owned = kubeapi.OwnedBy(all, owner.UID)
	return s, nil
}

func (c *Client) progress(m *kubeapi.Machine) string {
	if m.DeletionTimestamp == nil {
		return "nothing has deleted it yet"
	}
	return fmt.Sprintf("it has been in deletion since %s, and its instance is %s", m.DeletionTimestamp.UTC().Format("15:04:05"), c.core.Quote(m.Annotations[phaseKey]))
}
