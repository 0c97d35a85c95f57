package civo

import (
	"context"
	"strings"
	"time"

	"github.com/civo/civogo"

	"drydock.dev/drydock/remediations/engine"
)

// Civo's cloud controller manager sets provider IDs with this scheme.
const scheme = "civo://"

func providerID(instance string) string { return scheme + instance }

// Instance has the data of a machine that Civo's API reports.
type Instance struct {
	ID, Hostname, Status string
	CreatedAt            time.Time // by Civo's clock; zero if Civo did not report it
	GPUs                 int
}

// Runs is a machine's power state.
type Runs string

const (
	running Runs = "running"
	Stopped Runs = "stopped"
	// between means that Civo is building or deleting the instance, or its status is unknown.
	between Runs = "between"
)

// Runs reports whether the instance is running, according to its status.
func (in Instance) Runs() Runs {
	switch in.Status {
	case active:
		return running
	case shutOff, stopped, failed:
		return Stopped
	}
	return between
}

func (in Instance) inTransition() bool { return in.Status == building || in.Status == deleting }

func asInstance(in civogo.Instance) Instance {
	return Instance{ID: in.ID, Hostname: in.Hostname, Status: in.Status, CreatedAt: in.CreatedAt, GPUs: in.GPUCount}
}

// Find looks up the machine's instance, and changes nothing. Each error is a *refusedError, and
// Reboot would fail in the same way.
func (c *Client) Find(ctx context.Context, m engine.Machine) (Instance, error) {
	return c.lookUp(ctx, m, c.find)
}

// FindForReboot is like Find, but also returns an error for an instance that Reboot would refuse.
func (c *Client) FindForReboot(ctx context.Context, m engine.Machine) (Instance, error) {
	return c.lookUp(ctx, m, c.findForReboot)
}

func (c *Client) lookUp(ctx context.Context, m engine.Machine, find func(context.Context, task) (Instance, error)) (Instance, error) {
	t := task{verb: "finding", machine: m}
	if err := c.takeTurn(ctx, t); err != nil {
		return Instance{}, err
	}
	defer c.giveTurn()
	return find(ctx, t)
}

// A reboot while Civo builds or deletes the instance could only do harm, so findForReboot refuses
// it.
func (c *Client) findForReboot(ctx context.Context, t task) (Instance, error) {
	in, err := c.find(ctx, t)
	if err != nil {
		return Instance{}, err
	}
	if t.instance = in.ID; in.inTransition() {
		return Instance{}, c.refuse(t, reasonInTransition, nil, "the instance is %s", in.Status)
	}
	return in, nil
}

// find is Find for a caller that already holds c.turn.
func (c *Client) find(ctx context.Context, t task) (Instance, error) {
	id, err := c.instanceID(t)
	if err != nil {
		return Instance{}, err
	}
	if in, found, err := c.member(ctx, t, id); found || err != nil {
		return in, err
	}
	listed, err := c.instances(ctx, t)
	if err != nil {
		return Instance{}, err
	}
	if id != "" {
		return c.pickByID(t, id, listed)
	}
	return c.pickByHostname(t, listed)
}

func (c *Client) instanceID(t task) (string, error) {
	if t.machine.Node == "" {
		return "", c.refuse(t, reasonNotFound, nil, "the node has no name")
	}
	if t.machine.ProviderID == "" {
		return "", nil
	}
	id, ours := strings.CutPrefix(t.machine.ProviderID, scheme)
	if !ours || !plainID(id) {
		return "", c.refuse(t, reasonNotFound, nil, "the Node's spec.providerID %.200q is not of the form %s<instance-id>", t.machine.ProviderID, scheme)
	}
	return id, nil
}

// pickByID never falls back to the hostname: a new machine may have the hostname of a replaced one,
// and would be rebooted.
func (c *Client) pickByID(t task, id string, listed []civogo.Instance) (Instance, error) {
	t.instance = id
	for _, in := range listed {
		if in.ID != id {
			continue
		}
		// Civo's cloud controller manager sets the provider ID. It finds the instance with civogo's
		// finder, which accepts partial matches. So the ID may belong to another machine.
		if in.Hostname != "" && !strings.EqualFold(in.Hostname, t.machine.Node) {
			return Instance{}, c.refuse(t, reasonAmbiguous, nil, "the Node's spec.providerID is that of another host's instance, %s", c.quote(in.Hostname))
		}
		return asInstance(in), nil
	}
	return Instance{}, c.refuse(t, reasonNotFound, nil, "the instance no longer exists: cluster %s has no instance of that ID", c.o.ClusterID)
}

func (c *Client) pickByHostname(t task, listed []civogo.Instance) (Instance, error) {
	var found []civogo.Instance
	for _, in := range listed {
		if in.Hostname == t.machine.Node {
			found = append(found, in)
		}
	}
	switch {
	case len(found) == 0:
		return Instance{}, c.refuse(t, reasonNotFound, nil, "the instance no longer exists: cluster %s has no instance of exactly that hostname", c.o.ClusterID)
	case len(found) > 1:
		return Instance{}, c.twoOfOneName(t, found)
	case !plainID(found[0].ID):
		return Instance{}, c.refuse(t, reasonBadAnswer, nil, "the instance of that hostname has an invalid ID: %s", c.quote(found[0].ID))
	}
	return asInstance(found[0]), nil
}

func (c *Client) twoOfOneName(t task, found []civogo.Instance) error {
	ids := make([]string, 0, len(found))
	for _, in := range found {
		ids = append(ids, in.ID)
	}
	return c.refuse(t, reasonAmbiguous, nil, "the hostname is not unique: %d instances have it: %s", len(found), c.keys.Text(strings.Join(ids, ", ")))
}
