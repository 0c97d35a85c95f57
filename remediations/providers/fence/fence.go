// Package fence reboots machines by fence agents of the Linux-HA protocol: an agent switches the
// machine off, and on again when its own status says that it is off. Or the machine stays off.
//
// The request to switch off leaves at most once for each attempt. An agent that was started may
// have reached its device, however it ended, so only one that was not started has certainly done
// nothing. To switch on may be repeated: the engine calls Complete until the machine has booted.
//
// An agent's status names no machine. Only the configuration says which machine is the Node's.
package fence

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	nodes   func(ctx context.Context) ([]*corev1.Node, error)
	agents  []*agent
	devices sync.Map // by program and address: who may run an agent there
}

type agent struct {
	settings.Agent
	rows    []settings.Machine
	secrets redact.Keyring
}

// New reads the tables, and checks that each agent is a program. It runs none. nodes returns all
// Nodes of the cluster.
func New(o settings.Fence, nodes func(ctx context.Context) ([]*corev1.Node, error)) (*Client, error) {
	c := &Client{Fence: o, nodes: nodes}
	for i, in := range o.Agents {
		a := &agent{Agent: in, secrets: redact.Keyring{Mark: "[secret]"}}
		info, err := os.Stat(in.Program)
		if err == nil && (!info.Mode().IsRegular() || info.Mode()&0o111 == 0) {
			err = fmt.Errorf("%s is not a program", in.Program)
		}
		if err = errors.Join(err, a.read()); err != nil {
			return nil, fmt.Errorf("configuring providers.fence.agents[%d]: %w", i, err)
		}
		c.agents = append(c.agents, a)
	}
	return c, nil
}

// Rebooter is the remediation reboot.
type Rebooter struct{ *Client }

// Act implements engine.Actuator: it switches the machine off. Complete does the rest.
func (c Rebooter) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	return c.off(ctx, m, "rebooting", m.SwitchedOff, mayStill)
}

// off switches the machine off. The survey has shown that it may; without a survey, off asks.
// offToo: the machine may be off already.
func (c *Client) off(ctx context.Context, m engine.Machine, doing string, offToo bool, mayStill func() error) (remediations.CallOutcome, error) {
	because := func(err error, what string) error {
		return sentence(err, fmt.Sprintf("%s node %q by its fence agent: %s: %%s", doing, m.Node, what))
	}
	one, err := c.same(ctx, m)
	if m.Soft {
		err = kit.Refuse(kit.Unable, "a fence agent cannot ask the operating system to restart")
	}
	if err == nil && m.Before == "" {
		err = c.allowed(ctx, one, offToo)
	}
	if err != nil {
		return remediations.CallRefused, because(err, "nothing was done")
	}
	var no error
	a := c.run(ctx, one, "off", func() error { no = mayStill(); return no })
	switch {
	case no != nil:
		return remediations.CallRefused, fmt.Errorf("node %q by its fence agent: nothing was done: %w", m.Node, no)
	case !a.began:
		return remediations.CallRefused, because(c.explain(one, &a), "nothing was done")
	case a.says("Already OFF") && !offToo:
		return remediations.CallRefused, because(errOff, "nothing was done")
	case a.says("Already OFF"), a.says("Powered OFF"):
		return remediations.CallAccepted, nil
	}
	e := c.explain(one, &a)
	return remediations.CallUnknown, because(&kit.Refusal{Text: e.Text, Cause: e.Cause}, "the agent was started, and the machine may be off")
}

// errOff: a machine that is off may have been switched off on purpose.
var errOff = kit.Refuse(kit.Machine, "the machine is off, and only what runs is rebooted; switch it on unless it was switched off on purpose")

// Complete implements engine.Completer: a machine that is off is switched on.
func (c Rebooter) Complete(ctx context.Context, m engine.Machine, mayStill func() error) (bool, error) {
	one, err := c.same(ctx, m)
	if err == nil {
		if err = c.running(ctx, one); err == nil {
			return true, nil
		}
	}
	if errors.Is(err, errOff) {
		a := c.run(ctx, one, "on", func() error {
			if no := mayStill(); no != nil {
				return kit.Refuse(kit.While, "it is not switched on now: %v", no)
			}
			return nil
		})
		if a.err != nil || a.code != 0 {
			err = c.explain(one, &a)
		} else {
			return false, nil // the next status is the proof
		}
	}
	return false, sentence(err, fmt.Sprintf("node %q may still be off: %%s", m.Node))
}

// Survey implements engine.Surveyor.
func (c Rebooter) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	return c.survey(ctx, m, m.SwitchedOff, machine.kept)
}

func (c *Client) survey(ctx context.Context, m engine.Machine, offToo bool, keep func(machine) kept) remediations.Survey {
	one, err := c.same(ctx, m)
	if err == nil {
		err = c.allowed(ctx, one, offToo)
	}
	if err != nil {
		return sentence(err, fmt.Sprintf("the fence agent of node %q: %%s", m.Node)).Survey()
	}
	return remediations.Keeping(keep(*one))
}

// PowerOff is the remediation powerOff. The machine stays off, so it has no Complete.
type PowerOff struct{ *Client }

// Act implements engine.Actuator. It needs what the survey kept: without that, nothing could prove
// that the machine is off. A machine that is off already is what the step is to bring about.
func (c PowerOff) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if _, err := named(m.Before); err != nil {
		return remediations.CallRefused, fmt.Errorf("switching off node %q by its fence agent: nothing was done: %w", m.Node, err)
	}
	return c.off(ctx, m, "switching off", true, mayStill)
}

// Survey implements engine.Surveyor. It keeps the names that the later proof needs.
func (c PowerOff) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	return c.survey(ctx, m, true, func(one machine) kept { return kept{one.kept().Machine, m.Node, m.SystemUUID} })
}

// PoweredOff implements engine.PowerProver.
func (c PowerOff) PoweredOff(ctx context.Context, b remediations.Before) (missing string, err error) {
	was, err := named(b)
	if err != nil {
		return "", err
	}
	one, err := c.same(ctx, engine.Machine{Node: was.Node, SystemUUID: was.SystemUUID, Before: b})
	if err == nil {
		err = c.running(ctx, one)
	}
	switch {
	case err == nil:
		return "the fence agent says that the machine is on", nil
	case errors.Is(err, errOff):
		return "", nil
	}
	return "", sentence(err, "the fence agent did not say whether the machine is off: %s")
}

// Testify says whether the machine is on.
func (c *Client) Testify(ctx context.Context, m engine.Machine, _ signs.Sign) signs.Testimony {
	one, err := c.find(ctx, m)
	if err == nil {
		err = c.running(ctx, one)
	}
	switch {
	case err == nil:
		return signs.Testimony{Answer: signs.Well, Saw: "the fence agent says that the machine is on"}
	case errors.Is(err, errOff):
		return signs.Testimony{Answer: signs.Ill, Saw: "the fence agent says that the machine is off"}
	}
	return signs.Testimony{Answer: signs.Unknown, Saw: sentence(err, "the fence agent did not say whether the machine is on: %s").Text}
}

// same returns the Node's machine, if it is still the one that the survey kept.
func (c *Client) same(ctx context.Context, m engine.Machine) (*machine, error) {
	one, err := c.find(ctx, m)
	if err != nil || m.Before == "" {
		return one, err
	}
	var was kept
	if err := m.Before.Read(&was); err != nil || was.Machine != one.kept().Machine {
		return nil, kit.Refuse(kit.Machine, "the configuration now names another machine, or other options, than before the attempt")
	}
	return one, nil
}

// running asks for the machine's status, and returns why it cannot be rebooted; nil: it is on.
func (c *Client) running(ctx context.Context, one *machine) error {
	a := c.run(ctx, one, "status", nil)
	switch on, known := a.power(); {
	case !known:
		return c.explain(one, &a)
	case !on:
		return errOff
	}
	return nil
}

// allowed asks for the machine's status, and returns why it cannot be switched off; nil: it can.
// The status must be known.
func (c *Client) allowed(ctx context.Context, one *machine, offToo bool) error {
	if err := c.running(ctx, one); !offToo || !errors.Is(err, errOff) {
		return err
	}
	return nil
}

// sentence returns the error as a sentence for people.
func sentence(err error, format string) *kit.Refusal {
	return kit.Told(err, kit.Unreached, &redact.Keyring{}, format)
}
