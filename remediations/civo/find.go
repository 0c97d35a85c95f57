package civo

import (
	"context"
	"fmt"
	"strings"

	"github.com/civo/civogo"
)

// scheme begins the provider IDs that Civo's cloud controller manager sets.
const scheme = "civo://"

// Instance is a machine as Civo knows it.
type Instance struct {
	ID, Hostname, Status string
}

// Find looks up the machine and changes nothing. Its errors are *RefusedError.
func (c *Client) Find(ctx context.Context, m Machine) (Instance, error) {
	t := task{verb: "finding", machine: m}
	if err := c.takeTurn(ctx); err != nil {
		return Instance{}, c.refuse(t, Busy, err, "waiting for an earlier call to Civo to end")
	}
	defer c.giveTurn()
	return c.find(ctx, t)
}

// find is Find for the holder of the turn.
func (c *Client) find(ctx context.Context, t task) (Instance, error) {
	id, err := c.instanceID(t)
	if err != nil {
		return Instance{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	var listed []civogo.Instance
	o := c.call(ctx, nil, func(api *civogo.Client) (err error) {
		listed, err = api.ListKubernetesClusterInstances(c.o.ClusterID)
		return err
	})
	if err := c.readVerdict(t, o); err != nil {
		return Instance{}, err
	}
	if id != "" {
		return c.pickByID(t, id, listed)
	}
	return c.pickByHostname(t, listed)
}

// instanceID takes the ID out of the provider ID; it is empty if that is.
func (c *Client) instanceID(t task) (string, error) {
	if t.machine.NodeName == "" {
		return "", c.refuse(t, NotFound, nil, "the node has no name")
	}
	if t.machine.ProviderID == "" {
		return "", nil
	}
	id, ours := strings.CutPrefix(t.machine.ProviderID, scheme)
	if !ours || !plainID(id) {
		return "", c.refuse(t, NotFound, nil, "its spec.providerID %.200q is not of the form %s<instance-id>", t.machine.ProviderID, scheme)
	}
	return id, nil
}

// pickByID never falls back to the hostname: a Node whose machine was replaced
// under the same name must not cost the new machine a reboot.
func (c *Client) pickByID(t task, id string, listed []civogo.Instance) (Instance, error) {
	t.instance = id
	for _, in := range listed {
		if in.ID != id {
			continue
		}
		// Civo's cloud controller manager sets provider IDs with civogo's
		// finder, partial matches included, so an ID alone may be a neighbour's.
		if in.Hostname != "" && !strings.EqualFold(in.Hostname, t.machine.NodeName) {
			return Instance{}, c.refuse(t, Ambiguous, nil, "its spec.providerID names the instance of another host, %.200q", in.Hostname)
		}
		return Instance{ID: in.ID, Hostname: in.Hostname, Status: in.Status}, nil
	}
	return Instance{}, c.refuse(t, NotFound, nil, "cluster %s has no instance of that ID", c.o.ClusterID)
}

func (c *Client) pickByHostname(t task, listed []civogo.Instance) (Instance, error) {
	var found []Instance
	for _, in := range listed {
		if in.Hostname == t.machine.NodeName {
			found = append(found, Instance{ID: in.ID, Hostname: in.Hostname, Status: in.Status})
		}
	}
	switch {
	case len(found) == 0:
		return Instance{}, c.refuse(t, NotFound, nil, "cluster %s has no instance of exactly that hostname", c.o.ClusterID)
	case len(found) > 1:
		ids := make([]string, 0, len(found))
		for _, in := range found {
			ids = append(ids, in.ID)
		}
		return Instance{}, c.refuse(t, Ambiguous, nil, "%d instances have that hostname: %.200s", len(found), strings.Join(ids, ", "))
	case !plainID(found[0].ID):
		return Instance{}, c.refuse(t, BadAnswer, fmt.Errorf("instance ID %.100q", found[0].ID), "the instance of that hostname has an ID that is none")
	}
	return found[0], nil
}
