package redfish

import (
	"context"
	"errors"
	"fmt"

	"github.com/stmcginnis/gofish/schemas"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/signs"
)

// Rebooter is the remediation reboot: it resets a machine, or asks its operating system.
type Rebooter struct{ *Client }

// Act is engine.Actuator's.
func (c Rebooter) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	outcome := remediations.CallRefused
	err := c.with(ctx, m, true, func(k *call, s *schemas.ComputerSystem) (err error) {
		kind, err := k.kind(s, m.Soft)
		if err != nil {
			return err
		}
		outcome, err = k.send(ctx, s, kind, mayStill)
		return err
	})
	switch {
	case err == nil:
		return outcome, nil
	case outcome == remediations.CallUnknown:
		return outcome, told(err, fmt.Sprintf("rebooting node %q through its BMC: it may have been done: %%s; take it as done and look whether the machine boots", m.Node))
	}
	return outcome, told(err, fmt.Sprintf("rebooting node %q through its BMC: nothing was done: %%s", m.Node))
}

// Survey looks at the machine, so that what could only be refused costs no attempt.
func (c Rebooter) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	err := c.with(ctx, m, true, func(k *call, s *schemas.ComputerSystem) error {
		_, err := k.kind(s, false)
		return err
	})
	if err != nil {
		return c.survey(told(err, fmt.Sprintf("the BMC of node %q: %%s", m.Node)))
	}
	return remediations.Survey{}
}

// Testify says whether the machine is powered. A BMC that shows another machine shows nothing.
func (c Rebooter) Testify(ctx context.Context, m engine.Machine, _ signs.Sign) signs.Testimony {
	t := signs.Testimony{Answer: signs.Unknown}
	err := c.with(ctx, m, false, func(k *call, s *schemas.ComputerSystem) error {
		t.Saw = "the BMC says that the machine's power is " + k.quote(string(s.PowerState))
		switch s.PowerState {
		case schemas.OnPowerState:
			t.Answer = signs.Well
		case schemas.OffPowerState:
			t.Answer = signs.Ill
		default: // on its way, or nothing that is known
		}
		return nil
	})
	if err != nil {
		t.Saw = told(err, "the BMC did not say whether the machine is on: %s").Error()
	}
	return t
}

// with opens a call and finds the machine's System. on: the machine must be on.
func (c Rebooter) with(ctx context.Context, m engine.Machine, on bool, use func(*call, *schemas.ComputerSystem) error) error {
	if why := metal3(m.ProviderID); on && why != "" {
		return &callError{why: forMachine, text: why}
	}
	k, err := c.open(m)
	if err != nil {
		return err
	}
	want, err := k.bmc.wanted(m)
	pinned := want.serial != "" || k.bmc.uuid != (section.UUID{}) // what the configuration says outranks what another kubelet says of itself
	if err == nil && !pinned {
		err = c.alone(ctx, m, want.uuid)
	}
	if err != nil {
		return k.clean(err)
	}
	if err := k.bmc.takeTurn(ctx); err != nil {
		return &callError{why: forNow, text: "an earlier call to the BMC is not over: " + err.Error(), cause: err}
	}
	defer k.close(ctx)
	if err := k.connect(ctx); err != nil {
		return k.clean(err)
	}
	s, err := k.system(want)
	if err == nil && on {
		err = k.rebootable(s)
	}
	if err == nil {
		err = use(k, s)
	}
	return k.clean(err)
}

// clean is the error with its cause, without secrets.
func (k *call) clean(err error) error {
	if err == nil {
		return nil
	}
	var e *callError
	if !errors.As(err, &e) {
		e = &callError{why: forNow, text: "the call failed", cause: k.secrets.Error(err)}
	}
	out := *e
	if out.cause != nil {
		out.text += " (" + out.cause.Error() + ")"
	}
	out.text = k.secrets.Hide(out.text)
	return &out
}

// longest bounds what is said of one call.
const longest = 900

// told is an error in a sentence about its node, on one line and of bounded length.
func told(err error, format string) error {
	var e *callError
	if !errors.As(err, &e) {
		e = &callError{why: forNow, text: err.Error()}
	}
	out := *e
	out.text = text.Line(fmt.Sprintf(format, out.text), longest)
	return &out
}
