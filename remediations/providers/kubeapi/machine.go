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

// MachineVersion is the version of Cluster API's Machines.
const MachineVersion = "cluster.x-k8s.io/v1beta2"

// Machine has the fields of a Cluster API Machine that identify its Node and its machine.
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

// The signs of Cluster API 1.12 and later that it updates a Machine in place
// (kubernetes-sigs/cluster-api api/core/v1beta2/machine_types.go,
// api/runtime/v1beta2/extensionconfig_types.go). The annotations come before the condition.
const (
	inPlace         = "in-place-updates.internal.cluster.x-k8s.io/"
	updateKey       = inPlace + "update-in-progress"
	moveKey         = inPlace + "pending-acknowledge-move"
	pendingHooksKey = "runtime.cluster.x-k8s.io/pending-hooks"
	updateHook      = "UpdateMachine"
	updating        = "Updating"
)

// InPlaceUpdate reports that Cluster API updates the Machine in place, as the end of a sentence
// about the Machine; empty: it does not.
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

// MachineOf returns the only Machine in the namespace that is the Node's: each names the other, and
// no other Machine has either name. The error is ErrNotFound if no Machine names the Node.
func (c *Client) MachineOf(ctx context.Context, namespace, node, providerID string) (*Machine, error) {
	all, err := List[Machine](ctx, c.In(MachineVersion, namespace, "Cluster API 1.11 or later must be installed in this cluster"), "machines", "Machine", nil)
	if err != nil {
		return nil, err
	}
	return c.PickMachine(all, node, providerID)
}

// IdleMachineOf returns the Machine of MachineOf. It must exist, and Cluster API must not be
// updating it in place.
func (c *Client) IdleMachineOf(ctx context.Context, namespace, node, providerID string) (*Machine, error) {
	one, err := c.MachineOf(ctx, namespace, node, providerID)
	if errors.Is(err, ErrNotFound) {
		return nil, kit.Refuse(kit.Machine, "no Machine in namespace %s names the Node in status.nodeRef; the configuration must name the namespace of its Machine", namespace)
	}
	if err != nil {
		return nil, err
	}
	if update := c.InPlaceUpdate(one.Annotations, one.Status.Conditions); update != "" {
		return nil, kit.Refuse(kit.While, "Machine %s %s", one.Name, update)
	}
	return one, nil
}

// PickMachine chooses the Machine for MachineOf.
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
		return nil, kit.Refuse(kit.Machine, "Machines %s and %s could both be the Node's", found[0].Name, found[1].Name)
	case found[0].Status.NodeRef.Name != node || found[0].Spec.ProviderID != providerID:
		return nil, kit.Refuse(kit.Machine, "Machine %s and the Node do not name each other: it has the Node %s and the provider ID %s", found[0].Name,
			c.Quote(found[0].Status.NodeRef.Name), c.Quote(found[0].Spec.ProviderID))
	}
	return found[0], nil
}
