package karpenter

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/kubeapi"
	"drydock.dev/drydock/remediations"
)

// Replaced says how far the replacement is. Karpenter lets a NodeClaim go only after the cloud has no such instance any more. That
// counts while the NodePool is the one that there was. Karpenter promises no new NodeClaim, but only one that came is a proof.
func (c Replacer) Replaced(ctx context.Context, kept remediations.Before) (remediations.Replacement, error) {
	var was before
	if err := was.read(kept); err != nil {
		return remediations.Replacement{}, c.Told(refused("%s", err), "looking for the replacement: %s")
	}
	r, err := c.replaced(ctx, was)
	if err != nil {
		return remediations.Replacement{}, c.Told(err, fmt.Sprintf("looking for the replacement of NodeClaim %q: %%s", was.Claim))
	}
	return r, nil
}

func (c Replacer) replaced(ctx context.Context, was before) (r remediations.Replacement, err error) {
	var pool nodePool
	switch err := c.Get(ctx, "nodepools/"+was.Pool, "NodePool", &pool); {
	case errors.Is(err, kubeapi.ErrNotFound), err == nil && string(pool.UID) != was.PoolUID:
		r.Missing = fmt.Sprintf("NodePool %s is gone, or another one has its name, so nobody knows what became of its NodeClaims", was.Pool)
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
		lacks = append(lacks, fmt.Sprintf("the old NodeClaim %s is still there: %s", old.Name, c.progress(&old)))
	}
	var node corev1.Node
	switch err := c.core.Get(ctx, "nodes/"+was.Node, "Node", &node); {
	case errors.Is(err, kubeapi.ErrNotFound):
	case err != nil:
		return r, err
	case string(node.UID) == was.NodeUID:
		lacks = append(lacks, fmt.Sprintf("the old Node %s is still there", was.Node))
	}
	all, err := kubeapi.List[nodeClaim](ctx, c.Client.Client, "nodeclaims", nodeClaimKind, url.Values{"labelSelector": {poolLabel + "=" + was.Pool}})
	if err != nil {
		return r, err
	}
	for i := range all {
		one := &all[i]
		if one.up() && string(one.UID) != was.UID && one.CreationTimestamp.After(was.Newest) && one.Status.ProviderID != was.ProviderID {
			r.Successors = append(r.Successors, one.Status.ProviderID)
		}
	}
	if len(r.Successors) == 0 {
		lacks = append(lacks, fmt.Sprintf("NodePool %s has no new NodeClaim with a Node; Karpenter makes one only where pods need it", was.Pool))
	}
	r.Missing = strings.Join(lacks, "; ")
	return r, nil
}

// progress is how far Karpenter is with the deletion, and what holds it up.
func (c *Client) progress(n *nodeClaim) string {
	if n.DeletionTimestamp == nil {
		return "nobody deletes it"
	}
	for _, kind := range []string{"Drained", "VolumesDetached", "InstanceTerminating"} {
		if said := n.Status.get(kind); said.Status != metav1.ConditionTrue {
			return c.condition(said)
		}
	}
	return "the instance is being ended"
}
