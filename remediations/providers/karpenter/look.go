package karpenter

import (
	"context"
	"errors"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

type sight struct {
	node   corev1.Node
	claim  *nodeClaim
	pool   nodePool
	claims []nodeClaim // all NodeClaims of the NodePool, this one included
	// pods and budgets are empty if the NodeClaim has a terminationGracePeriod, which ends the
	// drain.
	pods    []corev1.Pod
	budgets []policyv1.PodDisruptionBudget
}

func (c *Client) look(ctx context.Context, m engine.Machine) (*sight, error) {
	if m.ProviderID == "" {
		return nil, kit.Refuse(kit.Machine, "the Node has no spec.providerID, so its NodeClaim cannot be identified")
	}
	n, err := c.NodeOf(ctx, m.Node, m.UID, m.ProviderID)
	if err != nil {
		return nil, err
	}
	s := &sight{node: *n}
	all, err := kubeapi.List[nodeClaim](ctx, c.Client, "nodeclaims", nodeClaimKind, nil)
	if err != nil {
		return nil, err
	}
	if s.claim, err = c.pick(&s.node, all); err != nil {
		return nil, err
	}
	if err := c.readPool(ctx, s, all); err != nil {
		return nil, err
	}
	if err := c.readPods(ctx, s); err != nil {
		return nil, err
	}
	return s, c.held(s)
}

func (c *Client) pick(n *corev1.Node, all []nodeClaim) (*nodeClaim, error) {
	of := owners(n.OwnerReferences, nodeClaimKind)
	if len(of) != 1 {
		return nil, kit.Refuse(kit.Machine, "the Node has %d NodeClaims as owners, but a Node of Karpenter has exactly one", len(of))
	}
	var found *nodeClaim
	for i := range all {
		one := &all[i]
		switch {
		case one.UID == of[0].UID && one.Name == of[0].Name:
			found = one
		case one.Status.ProviderID == n.Spec.ProviderID || one.Status.NodeName == n.Name:
			return nil, kit.Refuse(kit.Machine, "NodeClaim %s has the Node's provider ID or has the Node in status.nodeName, but the Node belongs to NodeClaim %s", one.Name, of[0].Name)
		}
	}
	switch {
	case found == nil:
		return nil, kit.Refuse(kit.Machine, "NodeClaim %s with the UID %s, the owner of the Node, no longer exists", of[0].Name, of[0].UID)
	case found.Status.ProviderID != n.Spec.ProviderID:
		return nil, kit.Refuse(kit.Machine, "NodeClaim %s has the provider ID %s, but the Node has %s", found.Name, c.Quote(found.Status.ProviderID), c.Quote(n.Spec.ProviderID))
	case found.Status.NodeName != n.Name:
		return nil, kit.Refuse(kit.Machine, "NodeClaim %s has another Node in status.nodeName: %s", found.Name, c.Quote(found.Status.NodeName))
	case !found.Status.True(registered):
		return nil, kit.Refuse(kit.Machine, "NodeClaim %s has no registered Node: %s", found.Name, c.condition(found.Status.Get(registered)))
	}
	return found, nil
}

func (c *Client) readPool(ctx context.Context, s *sight, all []nodeClaim) error {
	name, of := s.claim.Labels[poolLabel], owners(s.claim.OwnerReferences, "NodePool")
	if name == "" || len(of) != 1 || of[0].Name != name {
		return kit.Refuse(kit.Machine, "NodeClaim %s does not belong to exactly one NodePool, so no new NodeClaim would be made", s.claim.Name)
	}
	err := c.Get(ctx, "nodepools/"+name, "NodePool", &s.pool)
	if errors.Is(err, kubeapi.ErrNotFound) || err == nil && s.pool.UID != of[0].UID {
		return kit.Refuse(kit.Machine, "NodePool %s, the owner of NodeClaim %s, no longer exists", name, s.claim.Name)
	}
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Labels[poolLabel] == name {
			s.claims = append(s.claims, one)
		}
	}
	nodes, err := kubeapi.List[corev1.Node](ctx, c.core, "nodes", "Node", url.Values{"labelSelector": {poolLabel + "=" + name}})
	if err != nil {
		return err
	}
	for i := range nodes {
		other := &nodes[i]
		if other.UID == s.node.UID {
			continue
		}
		for _, of := range owners(other.OwnerReferences, nodeClaimKind) {
			if of.UID == s.claim.UID {
				return kit.Refuse(kit.Machine, "Node %s belongs to NodeClaim %s as well", other.Name, s.claim.Name)
			}
		}
		if other.Spec.ProviderID == s.node.Spec.ProviderID {
			return kit.Refuse(kit.Machine, "Node %s has the same spec.providerID %s", other.Name, c.Quote(other.Spec.ProviderID))
		}
	}
	return nil
}

// readPods reads nothing if the NodeClaim has a terminationGracePeriod, because this ends the
// drain.
func (c *Client) readPods(ctx context.Context, s *sight) (err error) {
	if s.claim.Spec.TerminationGracePeriod != "" {
		return nil
	}
	if s.pods, err = kubeapi.List[corev1.Pod](ctx, c.core, "pods", "Pod", url.Values{"fieldSelector": {"spec.nodeName=" + s.node.Name}}); err != nil {
		return err
	}
	s.budgets, err = kubeapi.List[policyv1.PodDisruptionBudget](ctx, c.policy, "poddisruptionbudgets", "PodDisruptionBudget", nil)
	return err
}
