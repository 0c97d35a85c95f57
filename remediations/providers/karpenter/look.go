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

// sight is a Node's NodeClaim, and the objects that influence its replacement.
type sight struct {
	node   corev1.Node
	claim  *nodeClaim
	pool   nodePool
	claims []nodeClaim // all of the NodePool's, with this one
	// pods are the Node's pods, and budgets those that may hold their eviction. Both are read only
	// if the drain has no time limit.
	pods    []corev1.Pod
	budgets []policyv1.PodDisruptionBudget
}

// look finds the Node's NodeClaim and changes nothing. Its errors say why the NodeClaim may not be
// deleted now.
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

// pick returns the only NodeClaim that is the Node's.
func (c *Client) pick(n *corev1.Node, all []nodeClaim) (*nodeClaim, error) {
	of := owners(n.OwnerReferences, nodeClaimKind)
	if len(of) != 1 {
		return nil, kit.Refuse(kit.Machine, "the Node has %d NodeClaims as its owners, and Karpenter's Nodes have one", len(of))
	}
	var found *nodeClaim
	for i := range all {
		one := &all[i]
		switch {
		case one.UID == of[0].UID && one.Name == of[0].Name:
			found = one
		case one.Status.ProviderID == n.Spec.ProviderID || one.Status.NodeName == n.Name:
			return nil, kit.Refuse(kit.Machine, "NodeClaim %s has the Node's provider ID or names the Node in status.nodeName, and the Node belongs to NodeClaim %s", one.Name, of[0].Name)
		}
	}
	switch {
	case found == nil:
		return nil, kit.Refuse(kit.Machine, "NodeClaim %s of UID %s, which the Node belongs to, does not exist any more", of[0].Name, of[0].UID)
	case found.Status.ProviderID != n.Spec.ProviderID:
		return nil, kit.Refuse(kit.Machine, "NodeClaim %s has the provider ID %s, not the Node's %s", found.Name, c.Quote(found.Status.ProviderID), c.Quote(n.Spec.ProviderID))
	case found.Status.NodeName != n.Name:
		return nil, kit.Refuse(kit.Machine, "NodeClaim %s names the Node %s in status.nodeName", found.Name, c.Quote(found.Status.NodeName))
	case !found.Status.True(registered):
		return nil, kit.Refuse(kit.Machine, "NodeClaim %s has no Node of its own, Karpenter says: %s", found.Name, c.condition(found.Status.Get(registered)))
	}
	return found, nil
}

// readPool reads the NodePool, and makes sure that no other Node of it belongs to the NodeClaim.
func (c *Client) readPool(ctx context.Context, s *sight, all []nodeClaim) error {
	name, of := s.claim.Labels[poolLabel], owners(s.claim.OwnerReferences, "NodePool")
	if name == "" || len(of) != 1 || of[0].Name != name {
		return kit.Refuse(kit.Machine, "NodeClaim %s does not belong to one NodePool, so nothing would make another one in its place", s.claim.Name)
	}
	err := c.Get(ctx, "nodepools/"+name, "NodePool", &s.pool)
	if errors.Is(err, kubeapi.ErrNotFound) || err == nil && s.pool.UID != of[0].UID {
		return kit.Refuse(kit.Machine, "NodePool %s, which NodeClaim %s belongs to, does not exist any more", name, s.claim.Name)
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

// readPods reads the pods and budgets that could hold the drain for ever, if nothing else ends it.
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
