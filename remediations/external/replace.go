package external

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drydock.dev/drydock/internal/kubeapi"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// Replacer is the remediation external-replace: a MachineDeletionRemediation is made. Its remediator deletes the Node's Machine, and the
// Machine's MachineSet makes another one.
type Replacer struct{ *Client }

// before is what goes on record with the intent.
type before struct {
	Machine    string `json:"machine"`
	UID        string `json:"uid"`
	ProviderID string `json:"providerID"`
	// Set is the MachineSet that owns the Machine.
	Set    string `json:"set"`
	SetUID string `json:"setUID"`
	// Newest is when the youngest Machine of the MachineSet was made, by the API server's clock.
	Newest time.Time `json:"newest"`
}

func (b *before) read(kept remediations.Before) error {
	if err := kept.Read(b); err != nil {
		return err
	}
	if b.Machine == "" || b.UID == "" || b.ProviderID == "" || b.Set == "" || b.SetUID == "" || b.Newest.IsZero() {
		return errors.New("the record does not say which Machine and MachineSet there were before")
	}
	return nil
}

// Survey finds the Machine, and names all that stands against its deletion.
func (c Replacer) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	s, _, err := c.sight(ctx, m)
	if err != nil {
		return c.core.Told(err, fmt.Sprintf("the replacement of node %q: %%s", m.Node)).Survey()
	}
	b := before{Machine: s.machine.Name, UID: string(s.machine.UID), ProviderID: s.machine.Spec.ProviderID, Set: s.set.Name, SetUID: string(s.set.UID)}
	for _, one := range s.owned {
		if made := one.CreationTimestamp.UTC(); made.After(b.Newest) {
			b.Newest = made
		}
	}
	return remediations.Keeping(b)
}

// sight is the Machine, and the object that would be made for it.
func (c Replacer) sight(ctx context.Context, m engine.Machine) (*sight, *object, error) {
	made, err := c.look(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.machineOf(ctx, m)
	return s, made, err
}

// Act is engine.Actuator's.
func (c Replacer) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	outcome, err := c.act(ctx, m, mayStill)
	return c.core.Ended(outcome, err, fmt.Sprintf("asking for the replacement of node %q by %s", m.Node, m.Template), "the object may have been made")
}

func (c Replacer) act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	var was before
	if err := was.read(m.Before); err != nil {
		return remediations.CallRefused, refused(kubeapi.ForMachine, "%s", err)
	}
	s, made, err := c.sight(ctx, m)
	switch {
	case err != nil:
		return remediations.CallRefused, err
	case string(s.machine.UID) != was.UID:
		return remediations.CallRefused, refused(kubeapi.ForMachine, "Machine %s has the UID %s, and the record has Machine %s of UID %s", s.machine.Name, s.machine.UID, was.Machine, was.UID)
	}
	return c.make(ctx, m, made, mayStill)
}

// Replaced says how far the replacement is, by the Machines alone: the object's Succeeded is its remediator's opinion.
func (c Replacer) Replaced(ctx context.Context, kept remediations.Before) (remediations.Replacement, error) {
	var was before
	if err := was.read(kept); err != nil {
		return remediations.Replacement{}, c.core.Told(refused(kubeapi.ForMachine, "%s", err), "looking for the replacement: %s")
	}
	r, err := c.replaced(ctx, was)
	if err != nil {
		return remediations.Replacement{}, c.core.Told(err, fmt.Sprintf("looking for the replacement of Machine %q: %%s", was.Machine))
	}
	return r, nil
}

func (c Replacer) replaced(ctx context.Context, was before) (r remediations.Replacement, err error) {
	var set machineSet
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
	of := kubeapi.Succession{Set: "MachineSet " + was.Set, ProviderID: was.ProviderID, Newest: was.Newest, Seen: set.Status.Replicas, Wanted: set.wanted()}
	for i := range all {
		if one := &all[i]; string(one.UID) == was.UID {
			of.Old = fmt.Sprintf("the old Machine %s is still there: %s", one.Name, c.progress(one))
		}
	}
	var members []kubeapi.Member
	for _, one := range ownedBy(all, was.SetUID) {
		up := one.DeletionTimestamp == nil && one.Spec.ProviderID != "" && one.Status.NodeRef.Name != ""
		members = append(members, kubeapi.Member{ProviderID: one.Spec.ProviderID, Made: one.CreationTimestamp.Time, Up: up})
	}
	return of.Replacement(members), nil
}
