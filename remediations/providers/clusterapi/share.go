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

// Share keeps Drydock and Cluster API from repairing the same machine at the same time. During a
// repair in another way, for example by a reboot, the annotation skip-remediation keeps the
// MachineHealthCheck from replacing the Machine. GiveBack finds these Machines by a label, also
// after a crash.
type Share struct {
	*Client
	// Registry has the repair steps of other programs. Records on Nodes may name them.
	Registry remediations.Registry
}

// itself is this provider, whose own replacements need no protection.
const itself = "clusterAPI"

// Free implements engine.Reserver.
func (c Share) Free(ctx context.Context, m engine.Machine, by string) error {
	_, err := c.shared(ctx, m, by)
	return err
}

// Take implements engine.Reserver. It sets skip-remediation if a MachineHealthCheck could replace
// the Machine. Before a replacement by conditions it sets only the label for GiveBack, because the
// later write to the status cannot set a label.
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

// By this label, GiveBack finds the Machine again after a request by conditions.
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

// shared returns nil if no MachineHealthCheck could replace the Machine, or if by is this provider.
// It returns an error if Cluster API is already replacing or repairing the Machine.
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

// giveBack removes the label in the last write, because it is needed to find the Machine again
// after a crash.
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

// A repair that waits between two steps is not over.
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

// The API server refuses the change if the Machine was replaced by another one of the same name.
// doing is the text of the error, with %s for the Machine's name.
func (c *Client) change(ctx context.Context, one *machine, metadata map[string]any, doing string) error {
	metadata["uid"] = one.UID
	r := kubeapi.Request{
		Method: http.MethodPatch, Path: "machines/" + one.Name, Query: url.Values{"fieldManager": {fieldManager}},
		ContentType: "application/merge-patch+json", Body: map[string]any{"metadata": metadata},
	}
	return c.write(ctx, one, r, doing)
}

func (c *Client) write(ctx context.Context, one *machine, r kubeapi.Request, doing string) error {
	a := c.Send(ctx, r)
	var shown machine
	if a.Err == nil && a.Status == http.StatusOK && json.Unmarshal(a.Body, &shown) == nil && shown.UID == one.UID {
		one.ResourceVersion = shown.ResourceVersion
		return nil
	}
	return c.Sentence(c.Explain(r, a), doing, kubeapi.Name(one))
}
