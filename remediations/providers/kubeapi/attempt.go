package kubeapi

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kit"
)

// Over reports whether the attempt on the Node has ended, and whether its repair has recovered the
// node (cured). If the Node is gone, the attempt has ended. registry has the repair steps of other
// programs.
func (c *Client) Over(ctx context.Context, registry remediations.Registry, node, attempt string) (over, cured bool, err error) {
	var n corev1.Node
	if err := c.Of("v1").Get(ctx, "nodes/"+node, "Node", &n); errors.Is(err, ErrNotFound) {
		return true, false, nil
	} else if err != nil {
		return false, false, err
	}
	j := registry.ReadJournal(&n)
	// An unreadable record may be the record of this attempt.
	underWay := j.Malformed != nil || j.Record != nil && j.Record.Phase.InFlight() && j.Record.Intent != nil && j.Record.Intent.ID == attempt
	if underWay {
		return false, false, nil
	}
	cured = slices.ContainsFunc(j.History, func(entry remediations.Entry) bool {
		return strings.HasPrefix(attempt, entry.ID+"-") && (entry.Outcome == remediations.OutcomeRecovered || entry.Outcome == remediations.OutcomeSelfRecovered)
	})
	return true, cured, nil
}

// NodeOf reads the Node. It is an error if the Node has another UID or another spec.providerID.
func (c *Client) NodeOf(ctx context.Context, node, uid, providerID string) (*corev1.Node, error) {
	var n corev1.Node
	err := c.Of("v1").Get(ctx, "nodes/"+node, "Node", &n)
	switch {
	case errors.Is(err, ErrNotFound) || err == nil && string(n.UID) != uid:
		return nil, kit.Refuse(kit.Machine, "the Node is gone, or another Node now has its name")
	case err != nil:
		return nil, err
	case n.Spec.ProviderID != providerID:
		return nil, kit.Refuse(kit.Machine, "the Node's spec.providerID is now %s, not %s", c.Quote(n.Spec.ProviderID), c.Quote(providerID))
	}
	return &n, nil
}
