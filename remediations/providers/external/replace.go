package external

import (
	"context"
	"errors"
	"fmt"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Replacer makes a MachineDeletionRemediation. The remediator deletes the Node's Machine, and the
// Machine's MachineSet makes a new one.
type Replacer struct{ *Client }

func read(kept remediations.Before) (was kubeapi.SetBefore, err error) {
	if err := kept.Read(&was); err != nil {
		return was, err
	}
	return was, was.Whole()
}

// Survey returns every reason against the Machine's deletion, and changes nothing.
func (c Replacer) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	s, _, err := c.sight(ctx, m)
	if err != nil {
		return c.core.Sentence(err, "the replacement of node %q", m.Node).Survey()
	}
	return remediations.Keeping(kubeapi.BeforeOf(s.machine, s.machine.Spec.ProviderID, &s.set, s.owned))
}

func (c Replacer) sight(ctx context.Context, m engine.Machine) (*sight, *object, error) {
	made, n, err := c.look(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.machineOf(ctx, n)
	return s, made, err
}

// Act implements engine.Actuator.
func (c Replacer) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	outcome, err := c.act(ctx, m, mayStill)
	return c.core.Ended(outcome, err, fmt.Sprintf("requesting the replacement of node %q by %s", m.Node, m.Template), "the object may have been made")
}

func (c Replacer) act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	was, err := read(m.Before)
	if err != nil {
		return remediations.CallRefused, kit.Refuse(kit.Machine, "%s", err)
	}
	s, made, err := c.sight(ctx, m)
	switch {
	case err != nil:
		return remediations.CallRefused, err
	case string(s.machine.UID) != was.UID:
		return remediations.CallRefused, kit.Refuse(kit.Machine, "Machine %s has the UID %s, but the record has Machine %s with the UID %s", s.machine.Name, s.machine.UID, was.Machine, was.UID)
	}
	return c.make(ctx, m, made, mayStill)
}

// Replaced reports the progress of the replacement. It reads only the Machines, because the
// object's condition Succeeded is not a proof.
func (c Replacer) Replaced(ctx context.Context, kept remediations.Before) (remediations.Replacement, error) {
	was, err := read(kept)
	if err != nil {
		return remediations.Replacement{}, c.core.Sentence(kit.Refuse(kit.Machine, "%s", err), "checking the replacement")
	}
	r, err := c.replaced(ctx, was)
	if err != nil {
		return remediations.Replacement{}, c.core.Sentence(err, "checking the replacement of Machine %q", was.Machine)
	}
	return r, nil
}

func (c Replacer) replaced(ctx context.Context, was kubeapi.SetBefore) (r remediations.Replacement, err error) {
	var set kubeapi.MachineSet
	switch err := c.machines().Get(ctx, "machinesets/"+was.Set, "MachineSet", &set); {
	case errors.Is(err, kubeapi.ErrNotFound), err == nil && string(set.UID) != was.SetUID:
		r.Missing = fmt.Sprintf("MachineSet %s is gone, or another one has its name, so it makes no new Machine", was.Set)
		return r, nil
	case err != nil:
		return r, err
	}
	all, err := c.listMachines(ctx)
	if err != nil {
		return r, err
	}
	old := ""
	for i := range all {
		if one := &all[i]; string(one.UID) == was.UID {
			old = fmt.Sprintf("the old Machine %s still exists: %s", one.Name, c.progress(one))
		}
	}
	var members []kubeapi.Member
	for _, one := range kubeapi.OwnedBy(all, set.UID) {
		up := one.DeletionTimestamp == nil && one.Spec.ProviderID != "" && one.Status.NodeRef.Name != ""
		members = append(members, kubeapi.Member{ProviderID: one.Spec.ProviderID, Made: one.CreationTimestamp.Time, Up: up})
	}
	return was.Succession(&set, "MachineSet "+was.Set, old).Replacement(members), nil
}
