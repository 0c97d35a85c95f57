package karpenter

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Replaced reports the progress of the replacement. Karpenter removes a NodeClaim only when the
// cloud no longer has the instance, so a missing NodeClaim proves that the machine is gone. No new
// NodeClaim is needed if no pod waits for a node.
func (c Replacer) Replaced(ctx context.Context, kept remediations.Before) (remediations.Replacement, error) {
	var was before
	if err := was.read(kept); err != nil {
		return remediations.Replacement{}, c.Sentence(kit.Refuse(kit.Machine, "%s", err), "checking the replacement")
	}
	r, err := c.replaced(ctx, was)
	if err != nil {
		return remediations.Replacement{}, c.Sentence(err, "checking the replacement of NodeClaim %q", was.Claim)
	}
	return r, nil
}

func (c Replacer) replaced(ctx context.Context, was before) (r remediations.Replacement, err error) {
	var pool nodePool
	switch err := c.Get(ctx, "nodepools/"+was.Pool, "NodePool", &pool); {
	case errors.Is(err, kubeapi.ErrNotFound), err == nil && string(pool.UID) != was.PoolUID:
		r.Missing = fmt.Sprintf("NodePool %s is gone, or another one has its name, so the state of its NodeClaims is unknown", was.Pool)
		return r, nil
	case err != nil:
		return r, err
	}
	var lacks []string
	var old nodeClaim
	switch err := c.Get(ctx, "nodeclaims/"+was.Claim, nodeClaimKind, &old); {
	case errors.Is(err, kubeapi.ErrNotFound), err == nil && string(old.UID) != was.UID:
		r.MachineGone = true
	case err != nil:
		return r, err
	default:
		lacks = append(lacks, fmt.Sprintf("the old NodeClaim %s still exists: %s", old.Name, c.progress(&old)))
	}
	var node corev1.Node
	nodeGone := false
	switch err := c.core.Get(ctx, "nodes/"+was.Node, "Node", &node); {
	case errors.Is(err, kubeapi.ErrNotFound):
		nodeGone = true
	case err != nil:
		return r, err
	case string(node.UID) == was.NodeUID:
		lacks = append(lacks, fmt.Sprintf("the old Node %s still exists", was.Node))
	}
	all, err := kubeapi.List[nodeClaim](ctx, c.Client.Client, "nodeclaims", nodeClaimKind, url.Values{"labelSelector": {poolLabel + "=" + was.Pool}})
	if err != nil {
		return r, err
	}
	coming := c.compare(was, all, &r)
	switch {
	case len(r.Successors) > 0:
	case len(lacks) == 0 && len(coming) == 0 && pool.Spec.Replicas == nil:
		waiting, err := c.waiting(ctx, was, nodeGone)
		if err != nil {
			return r, err
		}
		r.NoneNeeded = len(waiting) == 0
		lacks = waiting
	default:
		lacks = append(lacks, coming...)
	}
	if len(r.Successors) == 0 && !r.NoneNeeded {
		lacks = append(lacks, fmt.Sprintf("NodePool %s has no new NodeClaim with a Node", was.Pool))
	}
	r.Missing = strings.Join(lacks, "; ")
	return r, nil
}

// New NodeClaims with a Node become r.Successors. coming are texts for a message about the others.
func (c *Client) compare(was before, all []nodeClaim, r *remediations.Replacement) (coming []string) {
	for i := range all {
		one := &all[i]
		switch {
		case string(one.UID) == was.UID || !one.CreationTimestamp.After(was.Newest) || one.DeletionTimestamp != nil:
		case one.Status.ProviderID == was.ProviderID:
			coming = append(coming, fmt.Sprintf("NodeClaim %s has the old one's provider ID", one.Name))
		case one.up():
			r.Successors = append(r.Successors, one.Status.ProviderID)
		default:
			coming = append(coming, fmt.Sprintf("NodeClaim %s is not ready yet: %s", one.Name, c.onItsWay(one)))
		}
	}
	return coming
}

func (c *Client) onItsWay(n *nodeClaim) string {
	for _, kind := range []string{"Launched", registered} {
		if !n.Status.True(kind) {
			return c.condition(n.Status.Get(kind))
		}
	}
	return c.condition(n.Status.Get(initialized))
}

func (c *Client) progress(n *nodeClaim) string {
	if n.DeletionTimestamp == nil {
		return "it is not being deleted"
	}
	for _, kind := range []string{"Drained", "VolumesDetached", "InstanceTerminating"} {
		if !n.Status.True(kind) {
			return c.condition(n.Status.Get(kind))
		}
	}
	return "the instance is being terminated"
}
