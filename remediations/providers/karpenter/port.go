package karpenter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Replacer deletes the Node's NodeClaim, and Karpenter replaces the machine.
type Replacer struct{ *Client }

// before is recorded on the Node before the deletion. It is needed to prove the replacement
// afterwards.
type before struct {
	Claim      string `json:"claim"`
	UID        string `json:"uid"`
	ProviderID string `json:"providerID"`
	Node       string `json:"node"`
	NodeUID    string `json:"nodeUID"`
	Pool       string `json:"pool"`
	PoolUID    string `json:"poolUID"`
	// Newest is the creation time of the NodePool's youngest NodeClaim, by the API server's clock.
	Newest time.Time `json:"newest"`
	// Since is the earliest creation time of a pod that may replace a pod of the unhealthy Node. It
	// is zero in records of earlier versions; then every pod counts.
	Since time.Time `json:"since"`
}

func (b *before) read(kept remediations.Before) error {
	if err := kept.Read(b); err != nil {
		return err
	}
	if b.Claim == "" || b.UID == "" || b.ProviderID == "" || b.Node == "" || b.NodeUID == "" || b.Pool == "" || b.PoolUID == "" || b.Newest.IsZero() {
		return errors.New("the record on the Node lacks the NodeClaim, Node or NodePool before the replacement")
	}
	return nil
}

// Survey returns every reason against the NodeClaim's deletion, and changes nothing.
func (c Replacer) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	s, err := c.look(ctx, m)
	if err != nil {
		return c.Sentence(err, "the NodeClaim of node %q", m.Node).Survey()
	}
	b := before{
		Claim: s.claim.Name, UID: string(s.claim.UID), ProviderID: s.claim.Status.ProviderID,
		Node: s.node.Name, NodeUID: string(s.node.UID), Pool: s.pool.Name, PoolUID: string(s.pool.UID),
		Since: c.displacedSince(&s.node),
	}
	for _, one := range s.claims {
		if made := one.CreationTimestamp.UTC(); made.After(b.Newest) {
			b.Newest = made
		}
	}
	return remediations.Keeping(b)
}

// Act implements engine.Actuator.
func (c Replacer) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	outcome, err := c.act(ctx, m, mayStill)
	return c.Ended(outcome, err, fmt.Sprintf("replacing node %q through Karpenter", m.Node), "the NodeClaim may have been deleted")
}

func (c Replacer) act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	var was before
	if err := was.read(m.Before); err != nil {
		return remediations.CallRefused, kit.Refuse(kit.Machine, "%s", err)
	}
	s, err := c.look(ctx, m)
	switch {
	case err != nil:
		return remediations.CallRefused, err
	case string(s.claim.UID) != was.UID:
		return remediations.CallRefused, kit.Refuse(kit.Machine, "NodeClaim %s has the UID %s, but the record has NodeClaim %s with the UID %s", s.claim.Name, s.claim.UID, was.Claim, was.UID)
	}
	return c.Change(ctx, kubeapi.DeletionAsRead("nodeclaims/"+s.claim.Name, s.claim), mayStill, func(body []byte) bool {
		return kubeapi.Deleted(body, nodeClaimKind, s.claim.UID, &nodeClaim{})
	})
}
