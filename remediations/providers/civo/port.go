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

// Rebooter is the remediation reboot. It cuts a machine's power, or lets its operating system
// restart (soft).
type Rebooter struct{ *Client }

// Act implements engine.Actuator.
func (c Rebooter) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if m.Soft {
		return Outcome(c.SoftReboot(ctx, m, mayStill))
	}
	return Outcome(c.Reboot(ctx, m, mayStill))
}

// Survey looks up the machine before an intent is written. So no attempt is used if the machine is
// missing, if Civo is building or deleting it, or if the API does not answer.
func (c Rebooter) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	_, err := c.FindForReboot(ctx, m)
	return surveyOf(err)
}

// Testify reports whether the machine's instance runs. The answer is unknown while Civo builds or
// deletes the instance, or if its status is unknown.
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

// Replacer is the remediation replace. It lets Civo delete a machine and build a new one in the
// same pool.
type Replacer struct{ *Client }

// Act implements engine.Actuator.
func (c Replacer) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	var before Before
	if err := m.Before.Read(&before); err != nil {
		return remediations.CallRefused, fmt.Errorf("replacing node %q through Civo: nothing was done: %w", m.Node, err)
	}
	return Outcome(c.Recycle(ctx, m, before, mayStill))
}

// Survey looks up the machine and its pool. They are recorded, because Replaced needs them to
// recognise the replacement.
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

// Outcome returns the outcome of a write for its error. Any error other than a refusal means that
// the write may have been done.
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

// surveyOf returns the error of a read as the result of a Survey.
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
