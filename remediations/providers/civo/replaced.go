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

// Replaced reports whether the old instance is gone and the pool has its desired number of ACTIVE
// instances again. An instance that was off before need not be ACTIVE. Each error is a
// *refusedError.
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

// A DELETING instance is not gone: it may still write to its disks. A list without the old instance
// proves nothing if it is empty, or if an ACTIVE instance of the node pools is missing in it.
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

// An instance is new if it is ACTIVE and younger than all instances from before the replacement.
// Without creation times from Civo, no instance counts as new.
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
