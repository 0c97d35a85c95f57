// Package kubeapi sends what a provider asks of the API server about machines: one bounded request at a time, never repeated and
// never redirected, with the last look before one that changes something. client-go asks again by itself, follows redirects, and
// reads answers of any size; only who Drydock is to the API server is its part. An error says whom it concerns.
package kubeapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// Concern is whom a refusal is about, and so when to ask again.
type Concern string

// The concerns, all of them.
const (
	ForMachine Concern = "machine" // until a person acts
	ForWhile   Concern = "while"   // this machine, until what is under way is over
	ForNow     Concern = "passing" // all machines, for a moment
	ForSetup   Concern = "setup"   // all machines, until a person acts
	ForAccount Concern = "account" // Drydock's rights
)

// Error is one sentence for people.
type Error struct {
	Why   Concern
	Text  string
	Again time.Duration // how long the API server asks to be left alone
	Cause error         // without secrets; may be nil
}

func (e *Error) Error() string { return e.Text }

// Is finds the engine's errors about an account and about what passes in a moment, and what caused this one.
func (e *Error) Is(target error) bool {
	switch {
	case e.Why == ForAccount && target == engine.ErrAccount, e.Why == ForNow && e.Again <= engine.ActAgain && target == engine.ErrPassing:
		return true
	}
	return e.Cause != nil && errors.Is(e.Cause, target)
}

// longest bounds what is said of one call.
const longest = 900

// Told is an error in a sentence about its node, on one line, of bounded length and without secrets.
func (c *Client) Told(err error, format string) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Why: ForNow, Text: "the call failed", Cause: c.Secrets.Error(err)}
	}
	out := *e
	if out.Cause != nil {
		out.Text += " (" + out.Cause.Error() + ")"
	}
	out.Text = text.Line(c.Secrets.Hide(fmt.Sprintf(format, out.Text)), longest)
	return &out
}

// Survey is a refusal as the answer to a question.
func (e *Error) Survey() remediations.Survey {
	s := remediations.Survey{Trouble: e.Text, Fleetwide: true, Again: remediations.AskMended}
	switch e.Why {
	case ForNow:
		s.Again = max(remediations.AskPassing, e.Again)
	case ForMachine:
		s.Fleetwide = false
	case ForWhile:
		s.Fleetwide, s.Again = false, remediations.AskPassing
	case ForSetup, ForAccount:
	}
	return s
}

// Explain says what an answer means that is no success.
func (c *Client) Explain(r Request, a Answer) *Error {
	e := &Error{Why: ForSetup, Again: a.RetryAfter}
	if a.Err != nil && errors.As(a.Err, &e) {
		return e
	}
	switch said := ""; {
	case errors.Is(a.Err, bounded.ErrTooLarge):
		e.Text, e.Cause = fmt.Sprintf("the answer to %s is not used; check that nothing answers in the place of %s", r, c.o.Server), c.Secrets.Error(a.Err)
	case a.Err != nil:
		e.Why, e.Text, e.Cause = ForNow, c.o.Server+" did not answer "+r.String(), c.Secrets.Error(a.Err)
	case a.Own == nil && a.Status == http.StatusNotFound:
		e.Text = fmt.Sprintf("%s does not serve %s (HTTP 404 to %s); %s", c.o.Server, c.o.APIVersion, r, c.o.Needs)
	case a.Own == nil && a.Status < http.StatusInternalServerError:
		e.Text = fmt.Sprintf("what answers is not %s (HTTP %d to %s); check that nothing answers in its place", c.o.Server, a.Status, r)
	case a.Own == nil:
		e.Why, e.Text = ForNow, fmt.Sprintf("%s cannot answer just now (HTTP %d to %s)", c.o.Server, a.Status, r)
	default:
		said = c.Quote(a.Own.Message)
		switch {
		case strings.HasPrefix(a.Own.Message, "admission webhook "):
			e.Why, e.Text = ForMachine, fmt.Sprintf("a webhook of the cluster denies %s: %s", r, said)
		case a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden:
			e.Why, e.Text = ForAccount, fmt.Sprintf("%s refuses Drydock's account or its rights (HTTP %d to %s): %s; %s has the rights that it needs", c.o.Server, a.Status, r, said, c.o.Docs)
		case a.Status == http.StatusTooManyRequests || a.Status >= http.StatusInternalServerError:
			e.Why, e.Text = ForNow, fmt.Sprintf("%s cannot answer just now (HTTP %d to %s): %s", c.o.Server, a.Status, r, said)
		default:
			e.Why, e.Text = ForMachine, fmt.Sprintf("%s refuses %s (HTTP %d): %s", c.o.Server, r, a.Status, said)
		}
	}
	return e
}

// Quote is foreign text in a sentence.
func (c *Client) Quote(s string) string { return fmt.Sprintf("%q", text.Line(c.Secrets.Hide(s), 200)) }
