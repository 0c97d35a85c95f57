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

// The parts of OpenShift's Machine API that are read. A MachineDeletionRemediation deletes the
// machine through this API.
const (
	machineVersion = "machine.openshift.io/v1beta1"
	// machines is the only namespace that the Machine API uses.
	machines = "openshift-machine-api"
	// machineKey is the Node's annotation that shows the remediator the Machine. A kubelet can
	// forge it, so it is compared.
	machineKey = "machine.openshift.io/machine"
	phaseKey   = "machine.openshift.io/instance-state"
)

// sight is a Node's Machine, and the MachineSet that would make another one.
type sight struct {
	machine *kubeapi.Machine
	set     kubeapi.MachineSet
	owned   []kubeapi.Machine // the MachineSet's Machines, this one among them
}

func (c *Client) machines() *kubeapi.Client {
	return c.core.In(machineVersion, machines, "the Machine API of OpenShift must be there for MachineDeletionRemediation")
}

func (c *Client) listMachines(ctx context.Context) ([]kubeapi.Machine, error) {
	return kubeapi.List[kubeapi.Machine](ctx, c.machines(), "machines", "Machine", nil)
}

// machineOf finds the Node's Machine, which must be the one that the remediator would delete. It
// changes nothing. Its errors say why the Machine may not be deleted now.
func (c *Client) machineOf(ctx context.Context, n *corev1.Node) (*sight, error) {
	all, err := c.listMachines(ctx)
	if err != nil {
		return nil, err
	}
	s := &sight{}
	if s.machine, err = c.core.PickMachine(all, n.Name, n.Spec.ProviderID); errors.Is(err, kubeapi.ErrNotFound) {
		return nil, kit.Refuse(kit.Machine, "no Machine in namespace %s names the Node in status.nodeRef or has its spec.providerID", machines)
	} else if err != nil {
		return nil, err
	}
	one := s.machine
	owner := metav1.GetControllerOf(one)
	switch {
	case n.Spec.ProviderID == "":
		return nil, kit.Refuse(kit.Machine, "the Node has no spec.providerID, so its machine cannot be identified")
	case n.Annotations[machineKey] != machines+"/"+one.Name:
		return nil, kit.Refuse(kit.Machine, "the Node's annotation %s is %s, and its Machine is %s/%s, so the remediator would delete another one", machineKey, c.core.Quote(n.Annotations[machineKey]), machines, one.Name)
	case one.DeletionTimestamp != nil:
		return nil, kit.Refuse(kit.While, "Machine %s is being deleted already", one.Name)
	case owner == nil || owner.Kind != "MachineSet":
		return nil, kit.Refuse(kit.Machine, "Machine %s does not belong to a MachineSet, so nothing would make another one in its place", one.Name)
	}
	err = c.machines().Get(ctx, "machinesets/"+owner.Name, "MachineSet", &s.set)
	switch {
	case errors.Is(err, kubeapi.ErrNotFound) || err == nil && s.set.UID != owner.UID:
		return nil, kit.Refuse(kit.Machine, "MachineSet %s, which Machine %s belongs to, does not exist any more", owner.Name, one.Name)
	case err != nil:
		return nil, err
	case s.set.DeletionTimestamp != nil:
		return nil, kit.Refuse(kit.Machine, "MachineSet %s is being deleted, and would make no new Machine", owner.Name)
	case s.set.Status.Replicas > s.set.Wanted():
		return nil, kit.Refuse(kit.While, "MachineSet %s has %d Machines and is to have %d, so it would make no new one", owner.Name, s.set.Status.Replicas, s.set.Wanted())
	}
	s.owned = kubeapi.OwnedBy(all, owner.UID)
	return s, nil
}

// progress describes how far the Machine API is with the Machine.
func (c *Client) progress(m *kubeapi.Machine) string {
	if m.DeletionTimestamp == nil {
		return "it has not been deleted yet"
	}
	return fmt.Sprintf("it is being deleted since %s, and its instance is %s", m.DeletionTimestamp.UTC().Format("15:04:05"), c.core.Quote(m.Annotations[phaseKey]))
}
