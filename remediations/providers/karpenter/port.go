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

// Replacer is the remediation replace. Drydock deletes the Node's NodeClaim, and Karpenter does the
// rest.
type Replacer struct{ *Client }

// before is recorded with the intent.
type before struct {
	Claim      string `json:"claim"`
	UID        string `json:"uid"`
	ProviderID string `json:"providerID"`
	Node       string `json:"node"`
	NodeUID    string `json:"nodeUID"`
	Pool       string `json:"pool"`
	PoolUID    string `json:"poolUID"`
	// Newest is when the youngest NodeClaim of the NodePool was created, by the API server's clock.
	Newest time.Time `json:"newest"`
	// Since is a cutoff: only pods that were created at or after it count as displaced by the
	// fault. It is zero in records of earlier versions, and then every pod counts.
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

// Survey looks up the NodeClaim, and reports everything that forbids its deletion.
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
