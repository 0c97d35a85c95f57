package civo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/civo/civogo"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// Replaced reports the progress of a replacement. The replacement is complete if the old instance
// is gone, the pool's desired count is unchanged, and the pool has this number of ACTIVE instances.
// An instance that existed before the replacement and is off need not be ACTIVE. If a read fails,
// the error is a *refusedError, and nothing is known.
func (c *Client) Replaced(ctx context.Context, before Before) (remediations.Replacement, error) {
	t := task{verb: "checking the replacement of", machine: engine.Machine{Node: before.Hostname}, instance: before.InstanceID}
	if before.InstanceID == "" || before.PoolID == "" || before.PoolCount < 1 {
		return remediations.Replacement{}, c.refuse(t, reasonNotFound, nil, "the record on the Node lacks the instance or the pool before the replacement")
	}
	if err := c.takeTurn(ctx, t); err != nil {
		return remediations.Replacement{}, err
	}
	defer c.giveTurn()
	all, err := c.instances(ctx, t)
	if err != nil {
		return remediations.Replacement{}, err
	}
	pools, err := c.pools(ctx, t)
	if err != nil {
		return remediations.Replacement{}, err
	}
	var r remediations.Replacement
	var lacks, also []string
	r.MachineGone, lacks = c.oldGone(before, all, pools)
	r.Successors, also = c.poolWhole(before, all, pools)
	r.Missing = strings.Join(append(lacks, also...), "; ")
	return r, nil
}

// oldGone reports whether the old instance is gone. If it exists, or if this is unknown, oldGone
// returns false and the reason. A DELETING instance is not gone: it may still write to its disks.
// oldGone trusts a list without the old instance only if the list is complete: it must not be
// empty, and must have each ACTIVE instance of the node pools.
func (c *Client) oldGone(before Before, all []civogo.Instance, pools []civogo.KubernetesPool) (bool, []string) {
	unlisted := 0
	for _, p := range pools {
		for _, in := range p.Instances {
			switch {
			case in.ID == before.InstanceID:
				return false, []string{fmt.Sprintf("node pool %s still has the old instance %s, %s", c.quote(p.ID), in.ID, c.quote(in.Status))}
			case in.Status == active && byID(all, in.ID) == nil:
				unlisted++
			}
		}
	}
	switch old := byID(all, before.InstanceID); {
	case old != nil:
		return false, []string{fmt.Sprintf("the old instance %s still exists, %s", old.ID, c.quote(old.Status))}
	case len(all) == 0:
		return false, []string{"Civo lists no instances at all, which proves nothing"}
	case unlisted > 0:
		return false, []string{fmt.Sprintf("Civo's list of instances lacks %d that its node pools have, so it may also lack the old one", unlisted)}
	}
	return true, nil
}

// poolWhole returns the provider IDs of the pool's new instances, and what is still wrong with the
// pool compared with before. An instance is new if it is ACTIVE, and younger than all instances
// that existed before the replacement. If Civo reports no creation times, no instance counts as
// new.
func (c *Client) poolWhole(before Before, all []civogo.Instance, pools []civogo.KubernetesPool) (successors, lacks []string) {
	i := slices.IndexFunc(pools, func(p civogo.KubernetesPool) bool { return p.ID == before.PoolID })
	if i < 0 {
		return nil, []string{fmt.Sprintf("node pool %s no longer exists", before.PoolID)}
	}
	up, need := 0, before.PoolCount
	for _, member := range pools[i].Instances {
		in := byID(all, member.ID)
		if in == nil {
			continue
		}
		young := !before.Newest.IsZero() && in.CreatedAt.After(before.Newest)
		switch in.Status {
		case active:
			up++
			if young {
				successors = append(successors, providerID(in.ID))
			}
		case shutOff, stopped, failed:
			// An old instance that is off need not become ACTIVE, so fewer instances are needed.
			// Without creation times, this does not apply: the instance that is off may be the new
			// one.
			if !young && !before.Newest.IsZero() {
				need--
			}
		}
	}
	if pools[i].Count != before.PoolCount {
		lacks = append(lacks, fmt.Sprintf("the desired count of node pool %s was %d and is now %d, so a person or program has scaled it", before.PoolID, before.PoolCount, pools[i].Count))
	}
	if up != need {
		lacks = append(lacks, fmt.Sprintf("node pool %s has %d ACTIVE instances, and needs %d", before.PoolID, up, need))
	}
	if len(successors) == 0 && !before.Newest.IsZero() {
		lacks = append(lacks, fmt.Sprintf("node pool %s has no new instance that is ACTIVE", before.PoolID))
	}
	return successors, lacks
}

func byID(all []civogo.Instance, id string) *civogo.Instance {
	i := slices.IndexFunc(all, func(in civogo.Instance) bool { return in.ID == id })
	if i < 0 {
		return nil
	}
	return &all[i]
}
