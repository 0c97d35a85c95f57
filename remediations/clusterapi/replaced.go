package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/kubeapi"
	"drydock.dev/drydock/remediations"
)

// Replaced says how far the replacement is. That a Machine is not there counts only while its Cluster and its MachineSet are the ones
// that there were, nobody has paused the Cluster, as is done before it moves to another management cluster, and all Machines are there
// that the MachineSet has last seen.
func (c Replacer) Replaced(ctx context.Context, kept remediations.Before) (remediations.Replacement, error) {
	var was before
	if err := was.read(kept); err != nil {
		return remediations.Replacement{}, c.Told(&kubeapi.Error{Why: kubeapi.ForMachine, Text: err.Error()}, "looking for the replacement: %s")
	}
	r, err := c.replaced(ctx, was)
	if err != nil {
		return remediations.Replacement{}, c.Told(err, fmt.Sprintf("looking for the replacement of Machine %q: %%s", was.Machine))
	}
	return r, nil
}

func (c Replacer) replaced(ctx context.Context, was before) (r remediations.Replacement, err error) {
	var of cluster
	switch err := c.Get(ctx, "clusters/"+c.o.Cluster.Name, "Cluster", &of); {
	case errors.Is(err, kubeapi.ErrNotFound), err == nil && string(of.UID) != was.Cluster:
		r.Missing = fmt.Sprintf("Cluster %s is gone, or another one has its name, so nobody knows what became of its Machines", c.o.Cluster)
		return r, nil
	case err != nil:
		return r, err
	case of.Spec.Paused || of.has(pausedKey):
		r.Missing = of.name() + " is paused, perhaps because it moves to another management cluster"
		return r, nil
	}
	var set machineSet
	switch err := c.Get(ctx, "machinesets/"+was.Set, "MachineSet", &set); {
	case errors.Is(err, kubeapi.ErrNotFound), err == nil && string(set.UID) != was.SetUID:
		r.Missing = fmt.Sprintf("MachineSet %s/%s is gone, or another one has its name, so it makes no new Machine", c.o.Cluster.Namespace, was.Set)
		return r, nil
	case err != nil:
		return r, err
	}
	all, err := kubeapi.List[machine](ctx, c.Client.Client, "machines", "Machine", nil)
	if err != nil {
		return r, err
	}
	return c.compare(was, &set, all), nil
}

// compare says what the Machines that there are prove.
func (c Replacer) compare(was before, set *machineSet, all []machine) (r remediations.Replacement) {
	var lacks []string
	owned, up := ownedBy(all, was.SetUID), 0
	for i := range all {
		if one := &all[i]; string(one.UID) == was.UID {
			lacks = append(lacks, fmt.Sprintf("the old %s is still there: %s", one.name(), c.progress(one)))
		}
	}
	if len(lacks) == 0 && len(owned) < set.Status.Replicas {
		lacks = append(lacks, fmt.Sprintf("%s has seen %d Machines and %d are listed, so the list may lack the old one too", set.name(), set.Status.Replicas, len(owned)))
	}
	r.MachineGone = len(lacks) == 0
	for i := range owned {
		one := &owned[i]
		if !one.up() {
			continue
		}
		up++
		if one.CreationTimestamp.After(was.Newest) && one.Spec.ProviderID != was.ProviderID {
			r.Successors = append(r.Successors, one.Spec.ProviderID)
		}
	}
	if up < set.replicas() {
		lacks = append(lacks, fmt.Sprintf("%s has %d Machines with a Node, and is to have %d", set.name(), up, set.replicas()))
	}
	if len(r.Successors) == 0 {
		lacks = append(lacks, set.name()+" has no new Machine with a Node")
	}
	r.Missing = strings.Join(lacks, "; ")
	return r
}

// progress is how far Cluster API is with the Machine, and what holds it up.
func (c *Client) progress(m *machine) string {
	if m.DeletionTimestamp != nil {
		return c.condition(m.Status.get(deleting))
	}
	for _, kind := range []string{ownerRemedied, healthy} {
		if said := m.Status.get(kind); said.Status == metav1.ConditionFalse {
			return c.condition(said)
		}
	}
	return "Cluster API has not begun"
}
