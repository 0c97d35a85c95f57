package http

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
)

// Action is a remediation that the receiver carries out, by its name: reboot.
type Action struct {
	*Client
	Name string
}

// Act is engine.Actuator's.
func (c Action) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	told := func(err error, what string) error {
		return kit.Told(err, kit.Unreached, c.secrets, fmt.Sprintf("%s node %q over HTTP: %s: %%s", map[string]string{"reboot": "rebooting", "replace": "replacing"}[c.Name], m.Node, what))
	}
	const nothing = "nothing was done"
	if err := c.ask(ctx, m, c.Name); err != nil {
		return remediations.CallRefused, told(err, nothing)
	}
	d := document{Action: c.Name, machine: machineOf(m), Attempt: m.Attempt, Soft: m.Soft, Policy: m.Policy, Deadline: m.Deadline.UTC().Truncate(time.Second)}
	if m.Alert != nil {
		d.Alert = &alert{Name: m.Alert.Name, Labels: m.Alert.Labels}
	}
	gate := kit.NewGate(ctx, mayStill)
	a := c.post(ctx, d, gate)
	switch {
	case gate.Withdraw():
		if no := gate.Forbidden(); no != nil {
			a.Err = no
		}
		return remediations.CallRefused, told(c.explain(a), nothing)
	case own(a) && a.Status/100 == 2:
		return remediations.CallAccepted, nil
	case own(a) && refusals[a.Status].Why != "":
		return remediations.CallRefused, told(c.explain(a), nothing)
	}
	doubt := c.explain(a)
	doubt.Why = "" // it may have been done, so nothing is given back
	return remediations.CallUnknown, told(doubt, "the request left, and it may have been done")
}

// Survey is engine.Surveyor's.
func (c Action) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	if err := c.ask(ctx, m, c.Name); err != nil {
		return kit.Told(err, kit.Unreached, c.secrets, fmt.Sprintf("the receiver about node %q: %%s", m.Node)).Survey()
	}
	return remediations.Survey{}
}

// refusals are the statuses by which a receiver says that it did nothing, and what each means.
var refusals = map[int]kit.Refusal{
	http.StatusBadRequest:          {Why: kit.Machine, Text: "it refuses"},
	http.StatusNotFound:            {Why: kit.Machine, Text: "it refuses"},
	http.StatusUnprocessableEntity: {Why: kit.Machine, Text: "it refuses"},
	http.StatusUnauthorized:        {Why: kit.Unreached, Mended: true, Text: "it refuses Drydock; check signingKeyFile and httpConfig"},
	http.StatusForbidden:           {Why: kit.Unreached, Mended: true, Text: "it refuses Drydock; check signingKeyFile and httpConfig"},
	http.StatusConflict:            {Why: kit.While, Text: "not now"},
	http.StatusTooManyRequests:     {Why: kit.Unreached, Again: remediations.AskPassing, Text: "it wants fewer requests"},
}

// explain says what an answer means that is no success.
func (c *Client) explain(a kit.Answer) *kit.Refusal {
	var ours *kit.Refusal
	var untrusted *tls.CertificateVerificationError
	e := kit.Refusal{Why: kit.Unreached, Cause: c.secrets.Error(a.Err)}
	switch known, refuses := refusals[a.Status]; {
	case errors.As(a.Err, &ours):
		return ours
	case errors.As(a.Err, &untrusted):
		e.Mended, e.Text = true, "its certificate is not trusted; check httpConfig.tls_config, and who answers there"
	case errors.Is(a.Err, bounded.ErrTooLarge):
		e.Why, e.Text = kit.Machine, "its answer is not used"
	case a.Err != nil:
		e.Text = "there is no whole answer"
	case !own(a):
		e.Text = fmt.Sprintf("HTTP %d comes from something else than a receiver, which answers with JSON; check the url, and the proxies before it", a.Status)
	case refuses:
		e = known
		e.Text = fmt.Sprintf("the receiver answers HTTP %d: %s%s", a.Status, known.Text, c.sentence(a))
	case a.Status >= http.StatusInternalServerError:
		e.Text = fmt.Sprintf("the receiver answers HTTP %d%s", a.Status, c.sentence(a))
	default:
		e.Mended, e.Text = true, fmt.Sprintf("HTTP %d is neither success nor refusal, and redirects are not followed; check the url%s", a.Status, c.sentence(a))
	}
	e.Again = max(e.Again, a.Again)
	return &e
}

// sentence is the answer's own, in quotes.
func (c *Client) sentence(a kit.Answer) string {
	said := struct{ Message string }{string(a.Body)}
	if json.Valid(a.Body) {
		said.Message = ""
		_ = json.Unmarshal(a.Body, &said) // a message that is no text is none
	}
	return c.quoted(said.Message)
}

// quoted is foreign text behind a colon; empty: there is none.
func (c *Client) quoted(s string) string {
	if s = c.secrets.Text(s); s == "" {
		return ""
	}
	return fmt.Sprintf(": %q", s)
}

// against is what an observation has against the action; nil: nothing.
func (c *Client) against(o observation, action string) error {
	switch {
	case o.Job != nil && o.Job.State == working:
		return &kit.Refusal{Why: kit.While, Text: "the receiver is still at work on this machine" + c.quoted(o.Job.Attempt+" "+o.Job.Message)}
	case !slices.Contains(o.Can, action):
		return &kit.Refusal{Why: kit.Machine, Text: "the receiver cannot " + action + " this machine now" + c.quoted(o.Message)}
	}
	return nil
}
