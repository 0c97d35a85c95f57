package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/providers/kit"
)

// MachineVersion is the version of Cluster API's objects that Drydock reads.
const MachineVersion = "cluster.x-k8s.io/v1beta2"

// Machine links a Node to its machine. Cluster API and OpenShift's Machine API have the same
// fields.
type Machine struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ProviderID        string `json:"providerID"`
		InfrastructureRef struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"infrastructureRef"`
	} `json:"spec"`
	Status struct {
		NodeRef struct {
			Name string `json:"name"`
		} `json:"nodeRef"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Annotations and a condition that show that Cluster API 1.12 or later is updating a Machine in
// place (kubernetes-sigs/cluster-api api/core/v1beta2/machine_types.go,
// api/runtime/v1beta2/extensionconfig_types.go). Cluster API sets the annotations before the
// condition.
const (
	inPlace         = "in-place-updates.internal.cluster.x-k8s.io/"
	updateKey       = inPlace + "update-in-progress"
	moveKey         = inPlace + "pending-acknowledge-move"
	pendingHooksKey = "runtime.cluster.x-k8s.io/pending-hooks"
	updateHook      = "UpdateMachine"
	updating        = "Updating"
)

// InPlaceUpdate returns "" if Cluster API is not updating the Machine in place. Otherwise it
// returns a phrase for a message, to follow the Machine's name.
func (c *Client) InPlaceUpdate(annotations map[string]string, conditions []metav1.Condition) string {
	const says = "is being updated in place"
	if one := meta.FindStatusCondition(conditions, updating); one != nil && one.Status == metav1.ConditionTrue {
		return fmt.Sprintf(says+": %s is %s, %s, %s", one.Type, one.Status, one.Reason, c.Quote(one.Message))
	}
	for _, key := range []string{updateKey, moveKey, pendingHooksKey} {
		value, there := annotations[key]
		if there && (key != pendingHooksKey || slices.Contains(strings.Split(value, ","), updateHook)) {
			return fmt.Sprintf(says+" (annotation %s)", key)
		}
	}
	return ""
}

// MachineOf returns the Machine that names the Node in status.nodeRef and has its provider ID. No
// other Machine may have either. If no Machine has either, the error is ErrNotFound.
func (c *Client) MachineOf(ctx context.Context, namespace, node, providerID string) (*Machine, error) {
	all, err := List[Machine](ctx, c.In(MachineVersion, namespace, "Cluster API 1.11 or later must be installed in this cluster"), "machines", "Machine", nil)
	if err != nil {
		return nil, err
	}
	return c.PickMachine(all, node, providerID)
}

// IdleMachineOf is like MachineOf, and returns an error if Cluster API is updating the Machine in
// place. A missing Machine is a Refusal.
func (c *Client) IdleMachineOf(ctx context.Context, namespace, node, providerID string) (*Machine, error) {
	one, err := c.MachineOf(ctx, namespace, node, providerID)
	if errors.Is(err, ErrNotFound) {
		return nil, kit.Refuse(kit.Machine, "no Machine in namespace %s has the Node in status.nodeRef; write the namespace of its Machine into the configuration", namespace)
	}
	if err != nil {
		return nil, err
	}
	if update := c.InPlaceUpdate(one.Annotations, one.Status.Conditions); update != "" {
		return nil, kit.Refuse(kit.While, "Machine %s %s", one.Name, update)
	}
	return one, nil
}

// PickMachine returns the Node's Machine from the list all, by the rules of MachineOf.
func (c *Client) PickMachine(all []Machine, node, providerID string) (*Machine, error) {
	var found []*Machine
	for i := range all {
		if one := &all[i]; one.Status.NodeRef.Name == node || providerID != "" && one.Spec.ProviderID == providerID {
			found = append(found, one)
		}
	}
	switch {
	case len(found) == 0:
		return nil, ErrNotFound
	case len(found) > 1:
		return nil, kit.Refuse(kit.Machine, "Machines %s and %s could both be the Node's; correct status.nodeRef or spec.providerID of one of them", found[0].Name, found[1].Name)
	case found[0].Status.NodeRef.Name != node || found[0].Spec.ProviderID != providerID:
		return nil, kit.Refuse(kit.Machine, "Machine %s does not match the Node: the Machine has the Node %s and the provider ID %s", found[0].Name,
			c.Quote(found[0].Status.NodeRef.Name), c.Quote(found[0].Spec.ProviderID))
	}
	return found[0], nil
}
