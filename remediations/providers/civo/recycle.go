package civo

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/civo/civogo"

	"drydock.dev/drydock/remediations/engine"
)

// Civo's statuses of an instance.
const (
	active   = "ACTIVE"
	building = "BUILDING"
	deleting = "DELETING"
	shutOff  = "SHUTOFF"
	stopped  = "STOPPED"
	failed   = "FAILED"
)

// Before is the machine and its pool before a replacement. It is recorded on the Node before the
// call: without it, the new machine could not be recognised.
type Before struct {
	InstanceID string `json:"instance"`
	Hostname   string `json:"hostname"`
	PoolID     string `json:"pool"`
	PoolCount  int    `json:"count"` // how many instances the pool should have
	// Newest is the creation time of the cluster's youngest instance, by Civo's clock. It is zero
	// if Civo reported no creation times.
	Newest time.Time `json:"newest,omitzero"`
}

// Look looks up the machine and its pool for a replacement. It changes nothing. Its conditions are
// stricter than for a reboot:
//   - The ID in the provider ID and the exact hostname belong to the same instance, and no other
//     instance has that hostname.
//   - Civo is not building or deleting the instance.
//   - The instance has no GPUs.
//   - Exactly one pool lists the instance.
//
// Its errors are *refusedError.
func (c *Client) Look(ctx context.Context, m engine.Machine) (Before, error) {
	t := task{verb: "looking up", machine: m}
	if err := c.takeTurn(ctx, t); err != nil {
		return Before{}, err
	}
	defer c.giveTurn()
	in, all, err := c.pickForRecycling(ctx, t)
	if err != nil {
		return Before{}, err
	}
	t.instance = in.ID
	pool, err := c.poolOf(ctx, t)
	if err != nil {
		return Before{}, err
	}
	return Before{InstanceID: in.ID, Hostname: in.Hostname, PoolID: pool.ID, PoolCount: pool.Count, Newest: newest(all)}, nil
}

// Recycle lets Civo delete the machine and build another one in its pool, without a drain. It
// refuses if the machine is not the one in before. mayStill and the errors are the same as for
// Reboot.
func (c *Client) Recycle(ctx context.Context, m engine.Machine, before Before, mayStill func() error) error {
	lookUp := func(ctx context.Context, t task) (Instance, error) {
		in, _, err := c.pickForRecycling(ctx, t)
		if err == nil && (in.ID != before.InstanceID || in.Hostname != before.Hostname) {
			t.instance = in.ID
			err = c.refuse(t, reasonChanged, nil, "the recorded machine is instance %.100q with hostname %.200q", before.InstanceID, before.Hostname)
		}
		return in, err
	}
	return c.once(ctx, task{verb: "recycling", machine: m}, mayStill, lookUp, func(api *civogo.Client, in Instance) (*civogo.SimpleResponse, error) {
		return api.RecycleKubernetesCluster(c.o.ClusterID, in.Hostname)
	})
}

// Civo finds the machine to recycle only by its hostname. So pickForRecycling refuses a hostname
// that two instances share, in any letter case.
func (c *Client) pickForRecycling(ctx context.Context, t task) (Instance, []civogo.Instance, error) {
	fail := func(err error) (Instance, []civogo.Instance, error) { return Instance{}, nil, err }
	id, err := c.instanceID(t)
	if err != nil {
		return fail(err)
	}
	if id == "" {
		return fail(c.refuse(t, reasonNotFound, nil, "the node has no spec.providerID, so Drydock could not distinguish the old machine from the new one"))
	}
	listed, err := c.instances(ctx, t)
	if err != nil {
		return fail(err)
	}
	in, err := c.pickByID(t, id, listed)
	if err != nil {
		return fail(err)
	}
	t.instance = id
	namesakes := slices.DeleteFunc(slices.Clone(listed), func(i civogo.Instance) bool { return !strings.EqualFold(i.Hostname, t.machine.Node) })
	switch {
	case in.Hostname != t.machine.Node:
		return fail(c.refuse(t, reasonAmbiguous, nil, "the instance's hostname at Civo is %s, which is not exactly the node's name", c.quote(in.Hostname)))
	case len(namesakes) > 1:
		return fail(c.twoOfOneName(t, namesakes))
	case in.inTransition():
		return fail(c.refuse(t, reasonInTransition, nil, "the instance is %s", in.Status))
	case in.GPUs > 0:
		return fail(c.refuse(t, reasonGPUs, nil, "the instance has %d GPUs, and Drydock never replaces a machine with GPUs", in.GPUs))
	}
	return in, listed, nil
}

// poolOf returns an error if there is not exactly one.
func (c *Client) poolOf(ctx context.Context, t task) (civogo.KubernetesPool, error) {
	listed, err := c.pools(ctx, t)
	if err != nil {
		return civogo.KubernetesPool{}, err
	}
	found := slices.DeleteFunc(listed, func(p civogo.KubernetesPool) bool { return !lists(p, t.instance) })
	switch {
	case len(found) == 0:
		return civogo.KubernetesPool{}, c.refuse(t, reasonNotFound, nil, "no node pool of cluster %s lists the instance, so Civo would not build a new one", c.o.ClusterID)
	case len(found) > 1:
		return civogo.KubernetesPool{}, c.refuse(t, reasonAmbiguous, nil, "%d node pools of cluster %s list the instance", len(found), c.o.ClusterID)
	case !plainID(found[0].ID) || found[0].Count < 1:
		return civogo.KubernetesPool{}, c.refuse(t, reasonBadAnswer, nil, "Civo reports an impossible node pool for the instance: ID %s, %d instances", c.quote(found[0].ID), found[0].Count)
	}
	return found[0], nil
}

func lists(p civogo.KubernetesPool, id string) bool {
	return slices.ContainsFunc(p.Instances, func(in civogo.KubernetesInstance) bool { return in.ID == id })
}

func newest(all []civogo.Instance) time.Time {
	var latest time.Time
	for _, in := range all {
		if in.CreatedAt.After(latest) {
			latest = in.CreatedAt
		}
	}
	return latest
}
