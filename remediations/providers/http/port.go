package http

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/signs"
)

// Action is a remediation that the receiver carries out. Its name is, for example, reboot.
type Action struct {
	*Client
	Name string
}

// verbs are the actions in messages.
var verbs = map[string]string{"reboot": "rebooting", "powerOff": "switching off", "replace": "replacing"}

// Act implements engine.Actuator.
func (c Action) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	told := func(err error, what string) error {
		return kit.Told(err, kit.Unreached, c.secrets, fmt.Sprintf("%s node %q over HTTP: %s: %%s", verbs[c.Name], m.Node, what))
	}
	if err := c.ask(ctx, m, c.Name); err != nil {
		return remediations.CallRefused, told(err, "nothing was done")
	}
	gate := kit.NewGate(ctx, mayStill)
	a := c.post(ctx, documentOf(c.Name, m), gate)
	switch {
	case gate.Withdraw():
		if no := gate.Forbidden(); no != nil {
			return remediations.CallRefused, fmt.Errorf("node %q over HTTP: nothing was done: %w", m.Node, no)
		}
		return remediations.CallRefused, told(c.explain(a), "nothing was done")
	case own(a) && a.Status/100 == 2:
		return remediations.CallAccepted, nil
	case own(a) && refusals[a.Status].Why != "":
		return remediations.CallRefused, told(c.explain(a), "nothing was done")
	}
	e := c.explain(a)
	return remediations.CallUnknown, told(&kit.Refusal{Text: e.Text, Cause: e.Cause}, "the request left, and it may have been done")
}

// Survey implements engine.Surveyor.
func (c Action) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	if err := c.ask(ctx, m, c.Name); err != nil {
		return kit.Told(err, kit.Unreached, c.secrets, fmt.Sprintf("the receiver about node %q: %%s", m.Node)).Survey()
	}
	return remediations.Survey{}
}

// refusals are the statuses of a receiver that did nothing, and what each means.
var refusals = map[int]kit.Refusal{
	400: {Why: kit.Machine, Text: "it refuses"},
	401: {Why: kit.Account, Text: "it refuses Drydock; check signingKeyFile and httpConfig"},
	403: {Why: kit.Account, Text: "it refuses Drydock; check signingKeyFile and httpConfig"},
	404: {Why: kit.Machine, Text: "it refuses"},
	409: {Why: kit.While, Text: "not now"},
	422: {Why: kit.Machine, Text: "it refuses"},
	429: {Why: kit.Passing, Again: remediations.AskPassing, Text: "it wants fewer requests"},
}

// explain returns the meaning of an answer that is not a success.
func (c *Client) explain(a kit.Answer) *kit.Refusal {
	var ours *kit.Refusal
	var untrusted *tls.CertificateVerificationError
	e := kit.Refusal{Why: kit.Passing, Cause: c.secrets.Error(a.Err)} // one receiver serves all machines
	switch known, refuses := refusals[a.Status]; {
	case errors.As(a.Err, &ours):
		return ours
	case errors.As(a.Err, &untrusted):
		e.Text = "its certificate is not trusted; check httpConfig.tls_config, and who answers there"
	case errors.Is(a.Err, bounded.ErrTooLarge):
		e.Why, e.Text = kit.Machine, "its answer is not used"
	case a.Err != nil:
		e.Text = "there is no whole answer"
	case !own(a):
		e.Text = fmt.Sprintf("HTTP %d comes from something else than a receiver, which answers with JSON; check the url, and the proxies before it", a.Status)
	case a.Status == 404 && !object(a):
		e.Text = "HTTP 404 without a JSON object comes from something else than a receiver; check the url" + c.sentence(a)
	case refuses:
		e = known
		e.Text = fmt.Sprintf("the receiver answers HTTP %d: %s%s", a.Status, known.Text, c.sentence(a))
	default:
		if a.Status < 500 {
			e.Why = kit.Setup
		}
		e.Text = fmt.Sprintf("HTTP %d is neither success nor refusal (Drydock follows no redirect)%s", a.Status, c.sentence(a))
	}
	e.Again = max(e.Again, a.Again)
	return &e
}

// sentence returns the answer's own text: the message of its object, or its plain text.
func (c *Client) sentence(a kit.Answer) string {
	var said struct{ Message string }
	if json.Unmarshal(a.Body, &said) != nil && !json.Valid(a.Body) {
		said.Message = string(a.Body)
	}
	return c.quoted(said.Message)
}

// quoted returns foreign text behind a colon; empty: there is no text.
func (c *Client) quoted(s string) string {
	if s = c.secrets.Text(s); s != "" {
		return fmt.Sprintf(": %q", s)
	}
	return ""
}

// look requests the machine's state.
func (c *Client) look(ctx context.Context, m machine) (observation, error) {
	if c.urls[observe] == "" {
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

// ask returns what forbids the action; nil: nothing is known against it.
func (c *Client) ask(ctx context.Context, m engine.Machine, action string) error {
	if c.urls[observe] == "" {
		return nil // no observe.url is configured
	}
	o, err := c.look(ctx, machineOf(m))
	switch {
	case err != nil:
		return err
	case o.Job != nil && o.Job.State == working:
		return &kit.Refusal{Why: kit.While, Text: "the receiver is still at work on this machine" + c.quoted(o.Job.Attempt+" "+o.Job.Message)}
	case action == "replace" && m.ProviderID == "":
		return kit.Refuse(kit.Machine, "the Node has no spec.providerID, so nothing could prove that another machine has come")
	case !slices.Contains(o.Can, action):
		return &kit.Refusal{Why: kit.Machine, Text: "the receiver cannot " + action + " this machine now" + c.quoted(o.Message)}
	}
	return nil
}

// Testify says whether the machine runs.
func (c *Client) Testify(ctx context.Context, m engine.Machine, _ signs.Sign) signs.Testimony {
	o, err := c.look(ctx, machineOf(m))
	if err != nil {
		return signs.Testimony{Answer: signs.Unknown, Saw: kit.Told(err, kit.Unreached, c.secrets, "the receiver did not say whether the machine runs: %s").Text}
	}
	return signs.Testimony{Answer: runs[o.Machine], Saw: "the receiver says that the machine is " + o.Machine}
}

// proved is an action whose proof is the receiver's answer.
type proved struct{ Action }

// Act implements engine.Actuator. It needs what the survey kept: without that, nothing could be
// proved afterwards.
func (c proved) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if err := m.Before.Read(&machine{}); err != nil {
		return remediations.CallRefused, fmt.Errorf("%s node %q over HTTP: nothing was done: %w", verbs[c.Name], m.Node, err)
	}
	return c.Action.Act(ctx, m, mayStill)
}

// Survey keeps the data that later requests about the machine need.
func (c proved) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	if s := c.Action.Survey(ctx, m); s.Trouble != "" {
		return s
	}
	return remediations.Keeping(machineOf(m))
}

// PowerOff is the remediation powerOff.
type PowerOff struct{ proved }

// NewPowerOff makes the remediation powerOff.
func NewPowerOff(c *Client) PowerOff { return PowerOff{proved{Action{c, "powerOff"}}} }

// PoweredOff implements engine.PowerProver. A job that is at work may switch the machine on again.
func (c PowerOff) PoweredOff(ctx context.Context, b remediations.Before) (missing string, err error) {
	var was machine
	if err := b.Read(&was); err != nil {
		return "", err
	}
	o, err := c.look(ctx, was)
	switch {
	case err != nil:
		return "", kit.Told(err, kit.Unreached, c.secrets, "the receiver did not say whether the machine is off: %s")
	case o.Machine != off && o.Machine != gone:
		return "the receiver says that the machine is " + o.Machine, nil
	case o.Job != nil && o.Job.State == working:
		return "the receiver is still at work on this machine" + c.quoted(o.Job.Message), nil
	}
	return "", nil
}

// Replacer is the remediation replace.
type Replacer struct{ proved }

// NewReplacer makes the remediation replace.
func NewReplacer(c *Client) Replacer { return Replacer{proved{Action{c, "replace"}}} }

// Replaced reports how far the replacement is. The old machine is gone for good only if the
// receiver reports that it is gone: one that is off may come back, and its volumes would have two
// writers.
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
	if r.MachineGone = o.Machine == gone; !r.MachineGone {
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
