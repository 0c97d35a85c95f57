package clusterapi

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// way is the form of the request for a replacement. The package comment explains the forms.
type way string

const (
	annotate way = "annotation"
	mark     way = "conditions"
	remove   way = "delete"
)

type sight struct {
	cluster    cluster
	machine    *machine
	owned      []machine // the MachineSet's Machines, this one included
	set        kubeapi.MachineSet
	deployment *machineDeployment // nil if the MachineSet belongs to no MachineDeployment
	checks     []healthCheck      // only those that select the Machine
	way        way
}

func (c *Client) look(ctx context.Context, m engine.Machine) (*sight, error) {
	s := &sight{}
	if err := c.readCluster(ctx, &s.cluster); err != nil {
		return nil, err
	}
	all, err := kubeapi.List[machine](ctx, c.Client, "machines", "Machine", nil)
	if err != nil {
		return nil, err
	}
	if s.machine, err = c.pick(m, all); err != nil {
		return nil, err
	}
	if err := c.readOwners(ctx, s, all); err != nil {
		return nil, err
	}
	if err := c.readChecks(ctx, s); err != nil {
		return nil, err
	}
	s.way = c.wayTo(s)
	return s, c.held(s)
}

func (c *Client) wayTo(s *sight) way {
	switch {
	case len(s.checks) > 0:
		return annotate
	case c.o.Delete():
		return remove
	}
	return mark
}

func (c *Client) readCluster(ctx context.Context, into *cluster) error {
	err := c.Get(ctx, "clusters/"+c.o.Cluster.Name, "Cluster", into)
	if errors.Is(err, kubeapi.ErrNotFound) {
		return kit.Refuse(kit.Setup, "Cluster %s does not exist; correct providers.clusterAPI.cluster", c.o.Cluster)
	}
	return err
}

func (c *Client) pick(m engine.Machine, all []machine) (*machine, error) {
	if m.ProviderID == "" {
		return nil, &kit.Refusal{Why: kit.Machine, Text: "the Node has no spec.providerID, so its Machine cannot be identified"}
	}
	var found []*machine
	for i := range all {
		one := &all[i]
		if one.Spec.ClusterName == c.o.Cluster.Name && (one.Spec.ProviderID == m.ProviderID || one.Status.NodeRef.Name == m.Node) {
			found = append(found, one)
		}
	}
	switch {
	case len(found) == 0:
		return nil, kit.Refuse(kit.Machine, "no Machine of Cluster %s has the Node's spec.providerID %s or has the Node in status.nodeRef", c.o.Cluster, c.Quote(m.ProviderID))
	case len(found) > 1:
		return nil, kit.Refuse(kit.Machine, "%s and %s could both be the Node's: each has the Node's spec.providerID, or has the Node in status.nodeRef", kubeapi.Name(found[0]), kubeapi.Name(found[1]))
	}
	one := found[0]
	switch {
	case one.Spec.ProviderID != m.ProviderID:
		return nil, kit.Refuse(kit.Machine, "%s has the Node in status.nodeRef, but its spec.providerID is %s and the Node's is %s", kubeapi.Name(one), c.Quote(one.Spec.ProviderID), c.Quote(m.ProviderID))
	case one.Status.NodeRef.Name != m.Node:
		return nil, kit.Refuse(kit.Machine, "%s has the Node's spec.providerID, but its status.nodeRef has the Node %s", kubeapi.Name(one), c.Quote(one.Status.NodeRef.Name))
	}
	return one, nil
}

// readOwners returns an error if the Machine belongs to the control plane, or to no MachineSet.
func (c *Client) readOwners(ctx context.Context, s *sight, all []machine) error {
	owner := metav1.GetControllerOf(s.machine)
	_, control := s.machine.Labels[controlLabel]
	switch {
	case control:
		return &kit.Refusal{Why: kit.Machine, Text: kubeapi.Name(s.machine) + " belongs to the control plane, and Drydock never replaces control-plane machines"}
	case owner == nil:
		return &kit.Refusal{Why: kit.Machine, Text: kubeapi.Name(s.machine) + " has no owner, so no new Machine would be made"}
	case owner.Kind != "MachineSet" || !ofGroup(owner):
		return kit.Refuse(kit.Machine, "%s belongs to %s %s; Drydock replaces only Machines of a MachineSet", kubeapi.Name(s.machine), owner.Kind, owner.Name)
	}
	if err := c.readOwner(ctx, "machinesets/", kubeapi.Name(s.machine), owner, &s.set); err != nil {
		return err
	}
	s.owned = kubeapi.OwnedBy(all, owner.UID)
	if above := metav1.GetControllerOf(&s.set); above != nil && above.Kind == "MachineDeployment" && ofGroup(above) {
		s.deployment = &machineDeployment{}
		return c.readOwner(ctx, "machinedeployments/", kubeapi.Name(&s.set), above, s.deployment)
	}
	return nil
}

func (c *Client) readOwner(ctx context.Context, path, of string, owner *metav1.OwnerReference, into interface {
	kubeapi.Typed
	metav1.Object
}) error {
	err := c.Get(ctx, path+owner.Name, owner.Kind, into)
	if errors.Is(err, kubeapi.ErrNotFound) || err == nil && into.GetUID() != owner.UID {
		return kit.Refuse(kit.Machine, "%s %s, the owner of %s, no longer exists", owner.Kind, owner.Name, of)
	}
	return err
}

func ofGroup(o *metav1.OwnerReference) bool {
	return len(o.APIVersion) > len(group) && o.APIVersion[:len(group)+1] == group+"/"
}

func (c *Client) readChecks(ctx context.Context, s *sight) error {
	all, err := kubeapi.List[healthCheck](ctx, c.Client, "machinehealthchecks", "MachineHealthCheck", nil)
	if err != nil {
		return err
	}
	for _, check := range all {
		if check.Spec.ClusterName != c.o.Cluster.Name {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
		if err != nil {
			return &kit.Refusal{Why: kit.Setup, Text: fmt.Sprintf("the selector of %s is invalid, so it is unknown which Machines it selects; correct it", kubeapi.Name(&check)), Cause: c.Secrets.Error(err)}
		}
		if selector.Matches(k8slabels.Set(s.machine.Labels)) {
			s.checks = append(s.checks, check)
		}
	}
	return nil
}
