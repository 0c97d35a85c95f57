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

// Action carries out one repair step through the receiver: reboot, powerOff or replace.
type Action struct {
	*Client
	Name string
}

var verbs = map[string]string{"reboot": "rebooting", "powerOff": "switching off", "replace": "replacing"}

// Act implements engine.Actuator.
func (c Action) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	outcome, err := c.act(ctx, m, mayStill)
	return c.Ended(outcome, err, fmt.Sprintf("%s node %q over HTTP", verbs[c.Name], m.Node), "the request was sent, and may have been carried out")
}

func (c Action) act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if err := m.Before.Read(&machine{}); err != nil && c.Name != "reboot" {
		return remediations.CallRefused, kit.Refuse(kit.Machine, "%s", err) // without this record nothing could be proved afterwards
	}
	if err := c.ask(ctx, m, c.Name); err != nil {
		return remediations.CallRefused, err
	}
	a := c.post(ctx, documentOf(c.Name, m), kit.NewGate(ctx, mayStill))
	e := c.explain(a)
	switch {
	case !a.Left, own(a) && refusals[a.Status].Why != "":
		return remediations.CallRefused, e
	case own(a) && a.Status/100 == 2:
		return remediations.CallAccepted, nil
	}
	return remediations.CallUnknown, &kit.Refusal{Text: e.Text, Cause: e.Cause}
}

// Survey implements engine.Surveyor. It returns what a later proof needs; a reboot is proven by the
// Node's new boot ID alone.
func (c Action) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	if err := c.ask(ctx, m, c.Name); err != nil {
		return c.Sentence(err, "the receiver about node %q", m.Node).Survey()
	}
	if c.Name == "reboot" {
		return remediations.Survey{}
	}
	return remediations.Keeping(machineOf(m))
}

var refusals = map[int]kit.Refusal{
	400: {Why: kit.Machine, Text: "it refuses the request"},
	401: {Why: kit.Account, Text: "it refuses Drydock; check signingKeyFile and httpConfig"},
	403: {Why: kit.Account, Text: "it refuses Drydock; check signingKeyFile and httpConfig"},
	404: {Why: kit.Machine, Text: "it refuses the request"},
	409: {Why: kit.While, Text: "it cannot do this now"},
	422: {Why: kit.Machine, Text: "it refuses the request"},
	429: {Why: kit.Passing, Again: remediations.AskPassing, Text: "it receives too many requests"},
}

func (c *Client) explain(a kit.Answer) *kit.Refusal {
	var ours *kit.Refusal
	var untrusted *tls.CertificateVerificationError
	e := kit.Refusal{Why: kit.Passing, Cause: c.Secrets.Error(a.Err)} // the concern is Passing, because one receiver serves all machines
	switch known, refuses := refusals[a.Status]; {
	case errors.As(a.Err, &ours):
		return ours
	case errors.As(a.Err, &untrusted):
		e.Text = "the receiver's certificate is not trusted; check httpConfig.tls_config, and which server answers at the url"
	case errors.Is(a.Err, bounded.ErrTooLarge):
		e.Why, e.Text = kit.Machine, "Drydock rejects the receiver's answer"
	case a.Err != nil:
		e.Text = "the receiver gave no complete answer"
	case !own(a):
		e.Text = fmt.Sprintf("HTTP %d without JSON is not from a receiver; check the url, and the proxies before it", a.Status)
	case a.Status == 404 && !object(a):
		e.Text = "HTTP 404 without a JSON object is not from a receiver; check the url" + c.sentence(a)
	case refuses:
		e = known
		e.Text = fmt.Sprintf("the receiver answers HTTP %d: %s%s", a.Status, known.Text, c.sentence(a))
	default:
		if a.Status < 500 {
			e.Why = kit.Setup
		}
		e.Text = fmt.Sprintf("the receiver answers HTTP %d, which is neither a success nor a refusal (Drydock follows no redirect)%s", a.Status, c.sentence(a))
	}
	e.Again = max(e.Again, a.Again)
	return &e
}

func (c *Client) sentence(a kit.Answer) string {
	var said struct{ Message string }
	if json.Unmarshal(a.Body, &said) != nil && !json.Valid(a.Body) {
		said.Message = string(a.Body)
	}
	return c.Secrets.Quoted(said.Message)
}

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
		return o, &kit.Refusal{Why: kit.Machine, Text: "the receiver's answer is not a valid observation", Cause: c.Secrets.Error(err)}
	}
	return o, nil
}

// ask returns nil if no observe.url is configured.
func (c *Client) ask(ctx context.Context, m engine.Machine, action string) error {
	if c.urls[observe] == "" {
		return nil // no observe.url is configured
	}
	o, err := c.look(ctx, machineOf(m))
	switch {
	case err != nil:
		return err
	case o.Job != nil && o.Job.State == working:
		return &kit.Refusal{Why: kit.While, Text: "the receiver is still working on this machine" + c.Secrets.Quoted(o.Job.Attempt+" "+o.Job.Message)}
	case action == "replace" && m.ProviderID == "":
		return kit.Refuse(kit.Machine, "the Node has no spec.providerID, so nothing could prove that there is a new machine")
	case !slices.Contains(o.Can, action):
		return &kit.Refusal{Why: kit.Machine, Text: "the receiver cannot " + action + " this machine now" + c.Secrets.Quoted(o.Message)}
	}
	return nil
}

// what ends the error message "the receiver did not say WHAT".
func (c *Client) later(ctx context.Context, b remediations.Before, what string) (was machine, o observation, err error) {
	if err = b.Read(&was); err != nil {
		return was, o, err
	}
	if o, err = c.look(ctx, was); err != nil {
		err = c.Sentence(err, "the receiver did not say %s", what)
	}
	return was, o, err
}

// Testify reports whether the machine runs, according to the receiver.
func (c *Client) Testify(ctx context.Context, m engine.Machine, _ signs.Sign) signs.Testimony {
	o, err := c.look(ctx, machineOf(m))
	return c.Testimony("the receiver", o.Machine, runs[o.Machine], err)
}

// PowerOff switches the machine off through the receiver.
type PowerOff struct{ Action }

// NewPowerOff returns the PowerOff that uses the client.
func NewPowerOff(c *Client) PowerOff { return PowerOff{Action{c, "powerOff"}} }

// PoweredOff implements engine.PowerProver. It does not trust the state "off" while the receiver is
// still working on its job, which may switch the machine on again.
func (c PowerOff) PoweredOff(ctx context.Context, b remediations.Before) (missing string, err error) {
	_, o, err := c.later(ctx, b, "whether the machine is off")
	switch {
	case err != nil:
		return "", err
	case o.Machine != off && o.Machine != gone:
		return "the receiver says that the machine is " + o.Machine, nil
	case o.Job != nil && o.Job.State == working:
		return "the receiver is still working on this machine" + c.Secrets.Quoted(o.Job.Message), nil
	}
	return "", nil
}

// Replacer replaces the machine through the receiver.
type Replacer struct{ Action }

// NewReplacer returns the Replacer that uses the client.
func NewReplacer(c *Client) Replacer { return Replacer{Action{c, "replace"}} }

// Replaced reports the progress of the replacement. The old machine must be "gone": a machine that
// is off may start again, and two machines would then write to the same volumes.
func (c Replacer) Replaced(ctx context.Context, b remediations.Before) (r remediations.Replacement, err error) {
	was, o, err := c.later(ctx, b, "the progress of the replacement")
	if err != nil {
		return r, err
	}
	var lacks []string
	if r.MachineGone = o.Machine == gone; !r.MachineGone {
		lacks = append(lacks, "the receiver says that the old machine is "+o.Machine)
	}
	if o.Job != nil && o.Job.State != done {
		lacks = append(lacks, "the receiver says that its job is "+o.Job.State+c.Secrets.Quoted(o.Job.Message))
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
