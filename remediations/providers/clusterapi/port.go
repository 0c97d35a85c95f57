package clusterapi

import (
	"context"
	"errors"
	"fmt"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Replacer lets the MachineSet delete the Machine and make a new one.
type Replacer struct{ *Client }

// before is recorded on the Node before the request. It is needed to prove the replacement
// afterwards.
type before struct {
	kubeapi.SetBefore
	// Cluster is the UID of the Cluster object. The UID changes if the Machines move to another
	// management cluster.
	Cluster string `json:"cluster"`
}

func (b *before) read(kept remediations.Before) error {
	if err := kept.Read(b); err != nil {
		return err
	}
	if b.Cluster == "" {
		return errors.New("the record on the Node lacks the UID of the Cluster")
	}
	return b.Whole()
}

// Survey returns every reason against a replacement, and changes nothing.
func (c Replacer) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	s, err := c.look(ctx, m)
	if err != nil {
		return c.Sentence(err, "the Machine of node %q", m.Node).Survey()
	}
	return remediations.Keeping(before{kubeapi.BeforeOf(s.machine, s.machine.Spec.ProviderID, &s.set, s.owned), string(s.cluster.UID)})
}

// Act implements engine.Actuator.
func (c Replacer) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	outcome, err := c.act(ctx, m, mayStill)
	return c.Ended(outcome, err, fmt.Sprintf("replacing node %q through Cluster API", m.Node), "the replacement may have been requested")
}

func (c Replacer) act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	var was before
	if err := was.read(m.Before); err != nil {
		return remediations.CallRefused, &kit.Refusal{Why: kit.Machine, Text: err.Error()}
	}
	s, err := c.look(ctx, m)
	switch {
	case err != nil:
		return remediations.CallRefused, err
	case string(s.machine.UID) != was.UID:
		return remediations.CallRefused, kit.Refuse(kit.Machine, "%s has the UID %s, but the record has Machine %s with the UID %s", kubeapi.Name(s.machine), s.machine.UID, was.Machine, was.UID)
	}
	if m.GivesUpPods {
		if err := c.giveUpPods(ctx, s.machine, m.Attempt); err != nil {
			return remediations.CallRefused, err
		}
	}
	return c.ask(ctx, s, m.Attempt, mayStill)
}
