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

// Replaced asks Civo whether the machine was replaced: the old instance gone,
// the pool's count what it was, and that many of its instances ACTIVE, without
// those that were there before and are off. What could not be asked is a
// *refusedError, and proves nothing.
func (c *Client) Replaced(ctx context.Context, before Before) (remediations.Replacement, error) {
	t := task{verb: "looking at the replacement of", machine: engine.Machine{Node: before.Hostname}, instance: before.InstanceID}
	if before.InstanceID == "" || before.PoolID == "" || before.PoolCount < 1 {
		return remediations.Replacement{}, c.refuse(t, reasonNotFound, nil, "the record does not say which instance and pool there were before")
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

// oldGone says whether the old instance is gone, and else why that is not known.
// One that is DELETING is not gone: its disks may still be written to.
// That a list does not have it counts only if the list has what it must have.
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
		return false, []string{fmt.Sprintf("the old instance %s is still there, %s", old.ID, c.quote(old.Status))}
	case len(all) == 0:
		return false, []string{"Civo lists no instances at all, which proves nothing"}
	case unlisted > 0:
		return false, []string{fmt.Sprintf("Civo's list of instances lacks %d that its node pools have, so it may lack the old one too", unlisted)}
	}
	return true, nil
}

// poolWhole returns the provider IDs of the pool's new instances, and what the pool lacks of what it was. New are those that
// are ACTIVE and younger than all that there were before: none, where Civo does not say when they were created.
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
			// An instance that was there before is not what this replacement has to bring. Without the
			// times of creation the new machine may be the one that is off.
			if !young && !before.Newest.IsZero() {
				need--
			}
		}
	}
	if pools[i].Count != before.PoolCount {
		lacks = append(lacks, fmt.Sprintf("node pool %s should have had %d instances and should now have %d, so a person or program scaled it", before.PoolID, before.PoolCount, pools[i].Count))
	}
	if up != need {
		lacks = append(lacks, fmt.Sprintf("node pool %s has %d ACTIVE instances, and had to have %d", before.PoolID, up, need))
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
