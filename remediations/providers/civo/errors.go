package civo

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
)

// refusedError means that Civo certainly did nothing. Its text is one sentence for people.
type refusedError struct {
	Reason reason
	Err    error // the cause; may be nil
	text   string
	// again is how long Civo asks clients to wait.
	again time.Duration
}

func (e *refusedError) Error() string { return e.text }

// Unwrap returns the cause, so that errors.Is also finds the errors of a context and of civogo.
func (e *refusedError) Unwrap() error { return e.Err }

func (e *refusedError) as() *kit.Refusal {
	return &kit.Refusal{Why: e.Reason.Concern(), Text: e.text, Again: e.again}
}

// Survey returns the error as the result of the check before a step.
func (e *refusedError) Survey() remediations.Survey { return e.as().Survey() }

// Is reports whether the error matches one of the engine's errors, for example engine.ErrPassing.
func (e *refusedError) Is(target error) bool { return e.as().Is(target) }

// accountError means that Civo refuses the API key, or that the account's quota is reached: calls
// for all machines fail until a person acts.
type accountError struct{ refused *refusedError }

func (e *accountError) Error() string { return e.refused.text }

// Unwrap returns the *refusedError, whose Reason is reasonUnauthorized or reasonQuota.
func (e *accountError) Unwrap() error { return e.refused }

// unknownError means that Civo may or may not have carried out the write. The caller must treat the
// write as done until the machine proves otherwise.
type unknownError struct {
	Err  error // the cause; may be nil
	text string
}

func (e *unknownError) Error() string { return e.text }

// Unwrap returns the cause, so that errors.Is also finds the errors of a context and of civogo.
func (e *unknownError) Unwrap() error { return e.Err }

type task struct {
	verb     string
	machine  engine.Machine
	instance string // empty if it is not looked up yet
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
	return &unknownError{Err: cause, text: c.keys.Hide(fmt.Sprintf("%s: the call may have been done: %s%s; treat it as done, and check whether the machine changed",
		t, fmt.Sprintf(format, args...), because(cause)))}
}

// The caller has already removed secrets from cause.
func because(cause error) string {
	if cause == nil {
		return ""
	}
	return " (" + cause.Error() + ")"
}

func (c *Client) quote(text string) string { return fmt.Sprintf("%q", c.keys.Text(text)) }
