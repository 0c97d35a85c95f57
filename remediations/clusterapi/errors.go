package clusterapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// concern is whom a refusal is about, and so when to ask again.
type concern string

const (
	forMachine concern = "machine" // until a person acts
	forWhile   concern = "while"   // this machine, until what is under way is over
	forNow     concern = "passing" // all machines, for a moment
	forSetup   concern = "setup"   // all machines, until a person acts
	forAccount concern = "account" // Drydock's rights
)

// callError is one sentence for people.
type callError struct {
	why   concern
	text  string
	again time.Duration // how long the API server asks to be left alone
	cause error         // without secrets; may be nil
}

func (e *callError) Error() string { return e.text }

// Is finds the engine's error about an account, and what caused this one.
func (e *callError) Is(target error) bool {
	return e.why == forAccount && target == engine.ErrAccount || e.cause != nil && errors.Is(e.cause, target)
}

// longest bounds what is said of one call.
const longest = 900

// told is an error in a sentence about its node, on one line, of bounded length and without secrets.
func (c *Client) told(err error, format string) *callError {
	var e *callError
	if !errors.As(err, &e) {
		e = &callError{why: forNow, text: "the call failed", cause: c.secrets.Error(err)}
	}
	out := *e
	if out.cause != nil {
		out.text += " (" + out.cause.Error() + ")"
	}
	out.text = text.Line(c.secrets.Hide(fmt.Sprintf(format, out.text)), longest)
	return &out
}

// survey is a refusal as the answer to a question.
func (e *callError) survey() remediations.Survey {
	s := remediations.Survey{Trouble: e.text, Fleetwide: true, Again: remediations.AskMended}
	switch e.why {
	case forNow:
		s.Again = max(remediations.AskPassing, e.again)
	case forMachine:
		s.Fleetwide = false
	case forWhile:
		s.Fleetwide, s.Again = false, remediations.AskPassing
	case forSetup, forAccount:
	}
	return s
}

// explain says what an answer means that is no success.
func (c *Client) explain(r request, a answer) *callError {
	e := &callError{why: forSetup, again: a.retryAfter}
	switch said := ""; {
	case a.err != nil:
		e.why, e.text, e.cause = forNow, "the API server did not answer "+r.String(), c.secrets.Error(a.err)
	case a.own == nil && a.status == http.StatusNotFound:
		e.text = fmt.Sprintf("the API server does not serve %s (HTTP 404 to %s); Cluster API 1.11 or later must be installed in this cluster", apiVersion, r)
	case a.own == nil && a.status < http.StatusInternalServerError:
		e.text = fmt.Sprintf("what answers is not the API server (HTTP %d to %s); check that nothing answers in its place", a.status, r)
	case a.own == nil:
		e.why, e.text = forNow, fmt.Sprintf("the API server cannot answer just now (HTTP %d to %s)", a.status, r)
	default:
		said = c.quote(a.own.Message)
		switch {
		case strings.HasPrefix(a.own.Message, "admission webhook "):
			e.why, e.text = forMachine, fmt.Sprintf("a webhook of the cluster denies %s: %s", r, said)
		case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
			e.why, e.text = forAccount, fmt.Sprintf("the API server refuses Drydock's account or its rights (HTTP %d to %s): %s; docs/cluster-api.md has the rights that it needs", a.status, r, said)
		case a.status == http.StatusTooManyRequests || a.status >= http.StatusInternalServerError:
			e.why, e.text = forNow, fmt.Sprintf("the API server cannot answer just now (HTTP %d to %s): %s", a.status, r, said)
		default:
			e.why, e.text = forMachine, fmt.Sprintf("the API server refuses %s (HTTP %d): %s", r, a.status, said)
		}
	}
	return e
}

// quote is foreign text in a sentence.
func (c *Client) quote(s string) string { return fmt.Sprintf("%q", text.Line(c.secrets.Hide(s), 200)) }
