package http

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/signs"
)

// look asks about the machine.
func (c *Client) look(ctx context.Context, m machine) (observation, error) {
	if c.o.URLs[observe] == "" {
		return observation{}, &kit.Refusal{Why: kit.Setup, Text: "providers.http has no observe.url"}
	}
	a := c.post(ctx, document{Action: observe, machine: m}, nil)
	if !own(a) || a.Status/100 != 2 {
		return observation{}, c.explain(a)
	}
	o, err := parse(a.Body, m.UID)
	if err != nil {
		return o, &kit.Refusal{Why: kit.Machine, Text: "the receiver's answer is not an observation", Cause: c.secrets.Error(err)}
	}
	return o, nil
}

// ask looks whether the action may be asked for. Where nobody can be asked, nothing is known against it.
func (c *Client) ask(ctx context.Context, m engine.Machine, action string) error {
	if c.o.URLs[observe] == "" {
		return nil
	}
	o, err := c.look(ctx, machineOf(m))
	if err != nil {
		return err
	}
	return c.against(o, action)
}

// Testify says whether the machine runs. One that is gone shows nothing: which machine the Node has is not certain.
func (c *Client) Testify(ctx context.Context, m engine.Machine, _ signs.Sign) signs.Testimony {
	o, err := c.look(ctx, machineOf(m))
	if err != nil {
		return signs.Testimony{Answer: signs.Unknown, Saw: kit.Told(err, kit.Unreached, c.secrets, "the receiver did not say whether the machine runs: %s").Text}
	}
	t := signs.Testimony{Answer: signs.Unknown, Saw: "the receiver says that the machine is " + o.Machine}
	switch o.Machine {
	case running:
		t.Answer = signs.Well
	case off:
		t.Answer = signs.Ill
	}
	return t
}

// Replacer is the remediation replace.
type Replacer struct{ Action }

// Act is engine.Actuator's. Without what the survey kept nobody could prove the replacement afterwards.
func (c Replacer) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if err := m.Before.Read(&machine{}); err != nil {
		return remediations.CallRefused, fmt.Errorf("replacing node %q over HTTP: nothing was done: %w", m.Node, err)
	}
	return c.Action.Act(ctx, m, mayStill)
}

// Survey keeps what the receiver is asked by afterwards.
func (c Replacer) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	if s := c.Action.Survey(ctx, m); s.Trouble != "" {
		return s
	}
	return remediations.Keeping(machineOf(m))
}

// Replaced says how far the replacement is. The old machine is gone for good where the receiver says that it is off or gone.
func (c Replacer) Replaced(ctx context.Context, b remediations.Before) (r remediations.Replacement, err error) {
	var was machine
	if err := b.Read(&was); err != nil {
		return r, err
	}
	o, err := c.look(ctx, was)
	if err != nil {
		return r, kit.Told(err, kit.Unreached, c.secrets, "the receiver did not say how far the replacement is: %s")
	}
	var lacks []string
	if r.MachineGone = o.Machine == off || o.Machine == gone; !r.MachineGone {
		lacks = append(lacks, "the receiver says of the old machine that it is "+o.Machine)
	}
	if o.Job != nil && o.Job.State != done {
		lacks = append(lacks, "the receiver says of its job: "+o.Job.State+c.quoted(o.Job.Message))
	}
	if o.Job != nil && o.Job.State == failed {
		r.Blocked = lacks[len(lacks)-1]
	}
	r.Successors = slices.DeleteFunc(o.Successors, func(id string) bool { return id == "" || id == was.ProviderID })
	if len(r.Successors) == 0 {
		lacks = append(lacks, "the receiver names no successor")
	}
	r.Missing = strings.Join(lacks, "; ")
	return r, nil
}
