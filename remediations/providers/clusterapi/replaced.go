package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Replaced reports the progress of the replacement. A Machine that is missing from the list proves
// a deletion only under three conditions:
//   - The Cluster and the MachineSet are still the same objects.
//   - The Cluster is not paused, as it is while its objects move to another management cluster.
//   - The list has all Machines that the MachineSet counts.
func (c Replacer) Replaced(ctx context.Context, kept remediations.Before) (remediations.Replacement, error) {
	var was before
	if err := was.read(kept); err != nil {
		return remediations.Replacement{}, c.Sentence(&kit.Refusal{Why: kit.Machine, Text: err.Error()}, "checking the replacement")
	}
	r, err := c.replaced(ctx, was)
	if err != nil {
		return remediations.Replacement{}, c.Sentence(err, "checking the replacement of Machine %q", was.Machine)
	}
	return r, nil
}

func (c Replacer) replaced(ctx context.Context, was before) (r remediations.Replacement, err error) {
	var of cluster
	switch err := c.Get(ctx, "clusters/"+c.o.Cluster.Name, "Cluster", &of); {
	case errors.Is(err, kubeapi.ErrNotFound), err == nil && string(of.UID) != was.Cluster:
		r.Missing = fmt.Sprintf("Cluster %s is gone, or another one has its name, so the state of its Machines is unknown", c.o.Cluster)
		return r, nil
	case err != nil:
		return r, err
	case of.Spec.Paused || of.has(pausedKey):
		r.Missing = kubeapi.Name(&of) + " is paused, perhaps because it moves to another management cluster"
		return r, nil
	}
	var set kubeapi.MachineSet
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

func (c Replacer) compare(was before, set *kubeapi.MachineSet, all []machine) remediations.Replacement {
	var old, blocked string
	for i := range all {
		if one := &all[i]; string(one.UID) == was.UID {
			old = fmt.Sprintf("the old %s still exists: %s", kubeapi.Name(one), c.progress(one))
			blocked = c.blocked(one)
		}
	}
	var members []kubeapi.Member
	for _, one := range kubeapi.OwnedBy(all, set.UID) {
		members = append(members, kubeapi.Member{ProviderID: one.Spec.ProviderID, Made: one.CreationTimestamp.Time, Up: one.up()})
	}
	r := was.Succession(set, kubeapi.Name(set), old).Replacement(members)
	r.Blocked = blocked
	return r
}

func (c *Client) progress(m *machine) string {
	if m.DeletionTimestamp != nil {
		return c.condition(m.Status.Get(deleting))
	}
	for _, kind := range []string{ownerRemedied, healthy} {
		if m.Status.False(kind) {
			return c.condition(m.Status.Get(kind))
		}
	}
	return "Cluster API has not begun"
}

// waits are the reasons of the condition Deleting while a deletion waits for pods, volumes or
// hooks.
var waits = []string{"DrainingNode", "WaitingForPreDrainHook", "WaitingForVolumeDetach", "WaitingForPreTerminateHook"}

func (c *Client) blocked(m *machine) string {
	said := m.Status.Get(deleting)
	if m.DeletionTimestamp == nil || said == nil || said.Status != metav1.ConditionTrue || said.Message == "" || !slices.Contains(waits, said.Reason) {
		return ""
	}
	return fmt.Sprintf("%s: %s: %s", kubeapi.Name(m), said.Reason, text.Line(c.Secrets.Hide(said.Message), 400))
}
