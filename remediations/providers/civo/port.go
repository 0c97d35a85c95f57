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

// Rebooter is the remediation reboot: it cuts the power of a machine, or asks its operating system.
type Rebooter struct{ *Client }

// Act is engine.Actuator's.
func (c Rebooter) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if m.Soft {
		return Outcome(c.SoftReboot(ctx, m, mayStill))
	}
	return Outcome(c.Reboot(ctx, m, mayStill))
}

// Survey finds the machine, so that one that is not there or that Civo is building or deleting, or an API that does not answer, costs
// no attempt.
func (c Rebooter) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	_, err := c.FindForReboot(ctx, m)
	return surveyOf(err)
}

// Testify says whether the machine's instance runs. One that Civo is building or deleting, or whose status this version does not
// know, shows nothing.
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

// Replacer is the remediation replace: it has a machine deleted and another one of its pool built.
type Replacer struct{ *Client }

// Act is engine.Actuator's.
func (c Replacer) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	var before Before
	if err := m.Before.Read(&before); err != nil {
		return remediations.CallRefused, fmt.Errorf("replacing node %q through Civo: nothing was done: %w", m.Node, err)
	}
	return Outcome(c.Recycle(ctx, m, before, mayStill))
}

// Survey finds the machine and its pool, which the record keeps: what the replacement is told by.
func (c Replacer) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	b, err := c.Look(ctx, m)
	if err != nil {
		return surveyOf(err)
	}
	return remediations.Keeping(b)
}

// Replaced says how far the replacement is.
func (c Replacer) Replaced(ctx context.Context, b remediations.Before) (remediations.Replacement, error) {
	var before Before
	if err := b.Read(&before); err != nil {
		return remediations.Replacement{}, err
	}
	return c.Client.Replaced(ctx, before)
}

// Outcome makes of a write's error one of the three outcomes that a record knows. An error that is not certainly a refusal means
// that it may have been done.
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

// surveyOf makes of Civo's refusal of a question a reason to wait.
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
