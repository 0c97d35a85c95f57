// Package fence reboots machines by fence agents of the Linux-HA protocol: programs that switch the
// power of machines. For a reboot, an agent switches the machine off. When the agent's status shows
// that the machine is off, the agent switches it on again. In the step powerOff the machine stays
// off.
//
// Each attempt requests the switch-off at most once. An agent that was started may have switched
// the machine off, even if it failed. So "nothing was done" is certain only if the agent was not
// started. The switch-on may be repeated: the engine calls Complete until the machine has booted.
//
// An agent's status names no machine. So only the configuration shows which machine is the Node's.
package fence

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/fence/settings"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/signs"
)

// Client runs fence agents. It is safe for concurrent use.
type Client struct {
	settings.Fence
	kit.Reporter
	nodes   func(ctx context.Context) ([]*corev1.Node, error)
	agents  []*agent
	devices sync.Map // a semaphore for each program and address: one agent at a time
}

// New reads the tables of machines, and checks that each agent is an executable program. It runs no
// agent.
func New(o settings.Fence, nodes func(ctx context.Context) ([]*corev1.Node, error)) (*Client, error) {
	c := &Client{Fence: o, Reporter: kit.Reporter{Secrets: &redact.Keyring{}, Otherwise: kit.Unreached}, nodes: nodes}
	for i, in := range o.Agents {
		a, err := newAgent(in)
		if err != nil {
			return nil, fmt.Errorf("configuring providers.fence.agents[%d]: %w", i, err)
		}
		c.agents = append(c.agents, a)
	}
	return c, nil
}

type step struct {
	*Client
	// forGood is true for powerOff, which is also allowed on a machine that is already off.
	forGood bool
}

// Act implements engine.Actuator. It does not reboot a machine that is off, because a person may
// have switched it off on purpose, unless Drydock did.
func (c step) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	outcome, err := c.off(ctx, m, mayStill)
	doing := map[bool]string{true: "switching off", false: "rebooting"}[c.forGood]
	return c.Ended(outcome, err, fmt.Sprintf("%s node %q by its fence agent", doing, m.Node), "the agent was started, so the machine may be off")
}

// Without a Survey, off checks the power state itself. powerOff requires the record of a Survey,
// because only this record can later prove that the machine is off.
func (c step) off(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	one, err := c.find(ctx, m)
	switch {
	case m.Soft:
		err = kit.Refuse(kit.Unable, "a fence agent cannot ask the operating system to restart")
	case err == nil && m.Before == "" && c.forGood:
		err = kit.Refuse(kit.Machine, "the record on the Node lacks the machine before the step")
	case err == nil && m.Before == "":
		one, err = c.allowed(ctx, m)
	}
	if err != nil {
		return remediations.CallRefused, err
	}
	a := c.run(ctx, one, "off", mayStill)
	e := c.explain(one, a)
	switch {
	case !a.Began:
		return remediations.CallRefused, e
	case says(a, "Already OFF") && !c.offToo(m):
		return remediations.CallRefused, errOff
	case says(a, "Already OFF"), says(a, "Powered OFF"):
		return remediations.CallAccepted, nil
	}
	return remediations.CallUnknown, &kit.Refusal{Text: e.Text, Cause: e.Cause}
}

// A person may have switched it off on purpose.
var errOff = kit.Refuse(kit.Machine, "the machine is off, and Drydock reboots only running machines; switch it on unless it was switched off on purpose")

func (c step) offToo(m engine.Machine) bool { return c.forGood || m.SwitchedOff }

func (c step) allowed(ctx context.Context, m engine.Machine) (*machine, error) {
	one, is, err := c.look(ctx, m)
	if err == nil && is == off && !c.offToo(m) {
		err = errOff
	}
	return one, err
}

// Survey implements engine.Surveyor.
func (c step) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	one, err := c.allowed(ctx, m)
	if err != nil {
		return c.Sentence(err, "the fence agent of node %q", m.Node).Survey()
	}
	return remediations.Keeping(kept{one.digest(), m.Node, m.SystemUUID})
}

// Rebooter switches the machine off, and then on again in Complete.
type Rebooter struct{ step }

// NewRebooter returns a Rebooter for the client's machines.
func NewRebooter(c *Client) Rebooter { return Rebooter{step{Client: c}} }

// Complete implements engine.Completer. It returns true only if the agent's status says that the
// machine is on.
func (c Rebooter) Complete(ctx context.Context, m engine.Machine, mayStill func() error) (bool, error) {
	one, is, err := c.look(ctx, m)
	if err == nil && is == off {
		if a := c.run(ctx, one, "on", mayStill); a.Err != nil || a.Code != 0 {
			err = c.explain(one, a)
		}
	}
	if err != nil {
		return false, c.Sentence(err, "node %q may still be off", m.Node)
	}
	return is == on, nil // after the switch-on, the status of the next call is the proof
}

// PowerOff switches the machine off, and leaves it off.
type PowerOff struct{ step }

// NewPowerOff returns a PowerOff for the client's machines.
func NewPowerOff(c *Client) PowerOff { return PowerOff{step{c, true}} }

// PoweredOff implements engine.PowerProver.
func (c PowerOff) PoweredOff(ctx context.Context, b remediations.Before) (missing string, err error) {
	var was kept
	if err := b.Read(&was); err != nil {
		return "", err
	}
	_, is, err := c.look(ctx, engine.Machine{Node: was.Node, SystemUUID: was.SystemUUID, Before: b})
	switch {
	case err != nil:
		return "", c.Sentence(err, "the fence agent did not say whether the machine is off")
	case is != off:
		return "the fence agent says that the machine is " + is, nil
	}
	return "", nil
}

// Testify reports whether the machine is on.
func (c *Client) Testify(ctx context.Context, m engine.Machine, _ signs.Sign) signs.Testimony {
	_, is, err := c.look(ctx, m)
	return c.Testimony("the fence agent", is, map[string]signs.Answer{on: signs.Well, off: signs.Ill}[is], err)
}

func (c *Client) look(ctx context.Context, m engine.Machine) (one *machine, is string, err error) {
	if one, err = c.find(ctx, m); err != nil {
		return nil, "", err
	}
	a := c.run(ctx, one, "status", nil)
	if is = power(a); is == "" {
		err = c.explain(one, a)
	}
	return one, is, err
}
