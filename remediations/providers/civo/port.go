package civo

import (
	"context"
	"errors"
	"fmt"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/signs"
)

// Rebooter cuts the machine's power, or (soft) asks its operating system to restart.
type Rebooter struct{ *Client }

// Act implements engine.Actuator.
func (c Rebooter) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if m.Soft {
		return Outcome(c.SoftReboot(ctx, m, mayStill))
	}
	return Outcome(c.Reboot(ctx, m, mayStill))
}

// Survey looks up the machine. The step does not begin if the machine is missing, if Civo is
// building or deleting it, or if Civo's API does not answer. So no attempt is used up.
func (c Rebooter) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	_, err := c.FindForReboot(ctx, m)
	return surveyOf(err)
}

// Testify reports whether the machine's instance is running. While Civo builds or deletes the
// instance, the answer is unknown.
func (c Rebooter) Testify(ctx context.Context, m engine.Machine, _ signs.Sign) signs.Testimony {
	in, err := c.Find(ctx, m)
	if err != nil {
		return signs.Testimony{Answer: signs.Unknown, Saw: "Civo did not say whether the instance runs: " + err.Error()}
	}
	t := signs.Testimony{Answer: signs.Unknown, Saw: fmt.Sprintf("Civo says that the instance is %.40q", in.Status)}
	switch in.Runs() {
	case running:
		t.Answer = signs.Well
	case Stopped:
		t.Answer = signs.Ill
	case between:
	}
	return t
}

// Replacer lets Civo delete the machine and build a new one in the same pool.
type Replacer struct{ *Client }

// Act implements engine.Actuator.
func (c Replacer) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	var before Before
	if err := m.Before.Read(&before); err != nil {
		return remediations.CallRefused, fmt.Errorf("replacing node %q through Civo: nothing was done: %w", m.Node, err)
	}
	return Outcome(c.Recycle(ctx, m, before, mayStill))
}

// Survey looks up the machine and its pool. They are recorded on the Node, because Replaced needs
// them to recognise the new machine.
func (c Replacer) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	b, err := c.Look(ctx, m)
	if err != nil {
		return surveyOf(err)
	}
	return remediations.Keeping(b)
}

// Replaced reports the progress of the replacement.
func (c Replacer) Replaced(ctx context.Context, b remediations.Before) (remediations.Replacement, error) {
	var before Before
	if err := b.Read(&before); err != nil {
		return remediations.Replacement{}, err
	}
	return c.Client.Replaced(ctx, before)
}

// Outcome converts the error of a write. Unless the error is a *refusedError, Civo may have carried
// out the write.
func Outcome(err error) (remediations.CallOutcome, error) {
	var refused *refusedError
	switch {
	case err == nil:
		return remediations.CallAccepted, nil
	case errors.As(err, &refused):
		return remediations.CallRefused, err
	}
	return remediations.CallUnknown, err
}

func surveyOf(err error) remediations.Survey {
	if err == nil {
		return remediations.Survey{}
	}
	var refused *refusedError
	if errors.As(err, &refused) {
		return refused.Survey()
	}
	return (&kit.Refusal{Why: kit.Passing, Text: err.Error()}).Survey()
}
