package clusterapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Share keeps Drydock and Cluster API from repairing the same machine at the same time. While
// Drydock repairs a node in another way, for example by a reboot through its BMC, Share sets the
// annotation skip-remediation on the Machine. The MachineHealthCheck then does not replace the
// Machine.
//
// When the repair ends, Share removes what Drydock has set, also Drydock's request for a
// replacement that has not begun. It finds the Machines by a label, also after a crash.
type Share struct {
	*Client
	// Registry has the remediations (repair steps) that are not part of Drydock itself. Records on
	// Nodes may name them.
	Registry remediations.Registry
}

// itself is the name of this provider. Share does not prevent a replacement by this provider.
const itself = "clusterAPI"

// Free implements engine.Reserver.
func (c Share) Free(ctx context.Context, m engine.Machine, by string) error {
	_, err := c.shared(ctx, m, by)
	return err
}

// Take implements engine.Reserver. It sets the annotation skip-remediation if a MachineHealthCheck
// could replace the Machine. Before a replacement by conditions, which is this provider's own step,
// it sets only the label for GiveBack. The later write to the status cannot set a label.
func (c Share) Take(ctx context.Context, m engine.Machine, by string) error {
	if by == itself {
		return c.label(ctx, m)
	}
	one, err := c.shared(ctx, m, by)
	if err != nil || one == nil || one.has(skipKey) {
		return err
	}
	return c.change(ctx, one, map[string]any{"labels": map[string]any{keptLabel: "true"}, "annotations": map[string]any{skipKey: m.Attempt}}, "preventing the MachineHealthCheck from replacing %s")
}

// label sets keptLabel on the node's Machine, if its replacement will be requested by conditions.
// GiveBack finds the Machine by this label.
func (c Share) label(ctx context.Context, m engine.Machine) error {
	about := func(err error) error { return c.Sentence(err, "the Machine of node %q", m.Node) }
	all, err := kubeapi.List[machine](ctx, c.Client.Client, "machines", "Machine", nil)
	if err != nil {
		return about(err)
	}
	s := &sight{}
	if s.machine, err = c.pick(m, all); err != nil {
		return about(err)
	}
	if err := c.readChecks(ctx, s); err != nil {
		return about(err)
	}
	if c.wayTo(s) != mark || s.machine.Labels[keptLabel] == "true" {
		return nil
	}
	return c.change(ctx, s.machine, map[string]any{"labels": map[string]any{keptLabel: "true"}}, "labelling %s before its replacement is requested")
}

// shared returns the node's Machine if a MachineHealthCheck could replace the Machine. It returns
// nil if no MachineHealthCheck could, or if by is this provider. It returns an error if a
// replacement or another repair by Cluster API is in progress.
func (c Share) shared(ctx context.Context, m engine.Machine, by string) (*machine, error) {
	if by == itself {
		return nil, nil
	}
	about := func(err error) error { return c.Sentence(err, "the Machine of node %q", m.Node) }
	all, err := kubeapi.List[machine](ctx, c.Client.Client, "machines", "Machine", nil)
	if err != nil {
		return nil, about(err)
	}
	if !c.names(m, all) {
		return nil, nil
	}
	s := &sight{}
	if s.machine, err = c.pick(m, all); err != nil {
		return nil, about(err)
	}
	var holds kit.Holds
	if c.repairHolds(s.machine, &holds); len(holds) > 0 {
		return nil, fmt.Errorf("%w: %s", engine.ErrTaken, holds.Err().Error())
	}
	if err := c.readChecks(ctx, s); err != nil {
		return nil, about(err)
	}
	if len(s.checks) == 0 {
		return nil, nil
	}
	return s.machine, nil
}

// names reports whether any Machine of the Cluster has the Node's provider ID or names the Node.
func (c Share) names(m engine.Machine, all []machine) bool {
	for i := range all {
		one := &all[i]
		if one.Spec.ClusterName == c.o.Cluster.Name && (m.ProviderID != "" && one.Spec.ProviderID == m.ProviderID || one.Status.NodeRef.Name == m.Node) {
			return true
		}
	}
	return false
}

// GiveBack goes once through all Machines with Drydock's label. If the repair of a Machine's node
// has ended, GiveBack removes what Drydock has set on the Machine. This withdraws a request for a
// replacement that has not begun. Afterwards the MachineHealthCheck may replace the Machine again,
// and Cluster API may drain its Node.
//
// GiveBack does not remove:
//   - Values that another client has set or changed.
//   - Anything on a Machine that is being deleted, because a drain would begin again.
//   - A request on a Machine whose Node is gone, because that repair continues without its Node.
//
// The error joins the errors of all Machines.
func (c Share) GiveBack(ctx context.Context) error {
	all, err := kubeapi.List[machine](ctx, c.Client.Client, "machines", "Machine", url.Values{"labelSelector": {keptLabel + "=true"}})
	if err != nil {
		return c.Sentence(err, "listing the Machines with the label %s", keptLabel)
	}
	var out []error
	for i := range all {
		one := &all[i]
		if one.DeletionTimestamp != nil {
			continue
		}
		over, err := c.over(ctx, one)
		if err != nil || !over {
			out = append(out, err)
			continue
		}
		out = append(out, c.giveBack(ctx, one))
	}
	return errors.Join(out...)
}

// giveBack removes everything from the Machine that Drydock has set. The label is removed in the
// last write, because it is needed to find the Machine again after a crash.
func (c Share) giveBack(ctx context.Context, one *machine) error {
	if one.marked() {
		r := kubeapi.Request{
			Method: http.MethodPatch, Path: "machines/" + one.Name + "/status", Query: url.Values{"fieldManager": {fieldManager}},
			ContentType: "application/json-patch+json", Body: unmarking(one),
		}
		if err := c.write(ctx, one, r, "withdrawing the request for a replacement of %s"); err != nil {
			return err
		}
	}
	change := map[string]any{"resourceVersion": one.ResourceVersion, "labels": map[string]any{keptLabel: nil}}
	marks := map[string]any{}
	for _, key := range []string{skipKey, noDrainKey, remediateKey} {
		if one.ours(key) {
			marks[key] = nil
		}
	}
	change["annotations"] = marks
	return c.change(ctx, one, change, "removing Drydock's annotations from %s")
}

// over reports whether the repair of the Machine's node has ended. A repair that waits between two
// steps has not ended.
func (c Share) over(ctx context.Context, one *machine) (bool, error) {
	if one.Status.NodeRef.Name == "" {
		return !one.asked(), nil
	}
	var n corev1.Node
	if err := c.nodes.Get(ctx, "nodes/"+one.Status.NodeRef.Name, "Node", &n); errors.Is(err, kubeapi.ErrNotFound) {
		return !one.asked(), nil
	} else if err != nil {
		return false, c.Sentence(err, "reading the Node of %s", kubeapi.Name(one))
	}
	j := c.Registry.ReadJournal(&n)
	// An unreadable record may be the record of a repair in progress.
	underWay := j.Malformed != nil || j.Record != nil && (j.Record.Phase.InFlight() || j.Record.Phase == remediations.PhasePending && j.Record.Intent != nil)
	if underWay {
		return false, nil
	}
	return true, nil
}

// change changes the Machine's metadata. The API server refuses the write if the Machine was
// replaced by another one of the same name. The parameter doing is the text of the error, with %s
// for the Machine's name.
func (c *Client) change(ctx context.Context, one *machine, metadata map[string]any, doing string) error {
	metadata["uid"] = one.UID
	r := kubeapi.Request{
		Method: http.MethodPatch, Path: "machines/" + one.Name, Query: url.Values{"fieldManager": {fieldManager}},
		ContentType: "application/merge-patch+json", Body: map[string]any{"metadata": metadata},
	}
	return c.write(ctx, one, r, doing)
}

// write sends the change. It updates the Machine's resourceVersion from the answer, for the next
// write.
func (c *Client) write(ctx context.Context, one *machine, r kubeapi.Request, doing string) error {
	a := c.Send(ctx, r)
	var shown machine
	if a.Err == nil && a.Status == http.StatusOK && json.Unmarshal(a.Body, &shown) == nil && shown.UID == one.UID {
		one.ResourceVersion = shown.ResourceVersion
		return nil
	}
	return c.Sentence(c.Explain(r, a), doing, kubeapi.Name(one))
}
