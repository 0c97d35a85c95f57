package civo

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
)

// refusedError means that the provider certainly did nothing. Error returns one sentence for
// people: the node, what happened and what to do.
type refusedError struct {
	Reason reason
	Err    error // the cause; may be nil
	text   string
	// again is how long Civo asks clients to wait; zero: Civo asks for no pause.
	again time.Duration
}

func (e *refusedError) Error() string { return e.text }

// Unwrap returns the cause, for errors.Is with a context's errors or civogo's.
func (e *refusedError) Unwrap() error { return e.Err }

// as returns the refusal in the form that the engine reads.
func (e *refusedError) as() *kit.Refusal {
	return &kit.Refusal{Why: e.Reason.Concern(), Text: e.text, Again: e.again}
}

// Survey returns the refusal as the result of a survey, including what it concerns.
func (e *refusedError) Survey() remediations.Survey { return e.as().Survey() }

// Is finds the engine's errors.
func (e *refusedError) Is(target error) bool { return e.as().Is(target) }

// accountError means that Civo refuses the key, or that the quota is reached. No call for any
// machine will succeed until a person acts, so the caller must stop calling. It is a *refusedError
// too: nothing was done.
type accountError struct{ refused *refusedError }

func (e *accountError) Error() string { return e.refused.text }

// Unwrap returns the *refusedError, which has the reason: Unauthorized or Quota.
func (e *accountError) Unwrap() error { return e.refused }

// unknownError means that the provider may or may not have done the write. The caller must treat
// the write as done until the machine proves otherwise.
type unknownError struct {
	Err  error // the cause; may be nil
	text string
}

func (e *unknownError) Error() string { return e.text }

// Unwrap returns the cause, for errors.Is with a context's errors or civogo's.
func (e *unknownError) Unwrap() error { return e.Err }

// task is what an error is about.
type task struct {
	verb     string
	machine  engine.Machine
	instance string // empty while it is not known
}

func (t task) String() string {
	if t.instance == "" {
		return fmt.Sprintf("%s node %q through Civo", t.verb, t.machine.Node)
	}
	return fmt.Sprintf("%s node %q (instance %s) through Civo", t.verb, t.machine.Node, t.instance)
}

func (c *Client) refuse(t task, why reason, cause error, format string, args ...any) error {
	hint := strings.NewReplacer("{cluster}", c.o.ClusterID, "{region}", c.o.Region, "{key file}", c.o.APIKeyFile).Replace(reasons[why].advice)
	cause = c.keys.Error(cause)
	refused := &refusedError{Reason: why, Err: cause, text: c.keys.Hide(fmt.Sprintf("%s: nothing was done: %s%s; %s",
		t, fmt.Sprintf(format, args...), because(cause), hint))}
	if why.Concern() == kit.Account {
		return &accountError{refused}
	}
	return refused
}

func (c *Client) doubt(t task, cause error, format string, args ...any) error {
	cause = c.keys.Error(cause)
	return &unknownError{Err: cause, text: c.keys.Hide(fmt.Sprintf("%s: it may have been done: %s%s; take it as done and look whether the machine changed",
		t, fmt.Sprintf(format, args...), because(cause)))}
}

// because is the cause in brackets; it is clean already.
func because(cause error) string {
	if cause == nil {
		return ""
	}
	return " (" + cause.Error() + ")"
}

// quote is foreign text in a sentence.
func (c *Client) quote(text string) string { return fmt.Sprintf("%q", c.keys.Text(text)) }
