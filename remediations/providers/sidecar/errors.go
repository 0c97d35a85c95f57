package sidecar

import (
	"fmt"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kit"
	kind "drydock.dev/drydock/remediations/targets/sidecar"
)

// reason is why nothing was approved.
type reason string

// The reasons, all of them.
const (
	reasonChanged      reason = "Changed"      // the look right before it does not allow it
	reasonWithheld     reason = "Withheld"     // the caller's mayStill returned an error, or its time had ended
	reasonUnauthorized reason = "Unauthorized" // no token, or a right is missing: a person must act
	reasonRejected     reason = "Rejected"     // understood and refused
	reasonFailed       reason = "Failed"       // no connection
)

// refusedError means that certainly nothing was approved. Error returns one sentence for people:
// the pod, what happened and what to do.
type refusedError struct {
	Reason reason
	// Saw is the look before the approval; its At is zero if there was none.
	Saw  kind.Observation
	Err  error // the cause; may be nil
	text string
}

func (e *refusedError) Error() string { return e.text }

// Unwrap returns the cause, for errors.Is.
func (e *refusedError) Unwrap() error { return e.Err }

// Is matches the engine's errors. Every error concerns this one pod: also a proxy that refuses the
// token, which may happen once by mistake.
func (e *refusedError) Is(target error) bool {
	r := kit.Refusal{Why: kit.While, Text: e.text}
	switch e.Reason {
	case reasonUnauthorized:
		r.Why, r.NeedsPerson = kit.Unreached, true
	case reasonRejected:
		r.Why = kit.Machine
	case reasonChanged, reasonWithheld, reasonFailed:
	}
	return r.Is(target)
}

// attempt is one approval.
type attempt struct {
	pod    remediations.Pod
	saw    kind.Observation
	tokens *redact.Keyring // to keep them out of texts
}

func (a *attempt) refuse(why reason, cause error, format string, args ...any) error {
	cause = a.tokens.Error(cause)
	text := fmt.Sprintf("approving the sidecar of pod %s: nothing was approved: %s%s", a.pod, fmt.Sprintf(format, args...), because(cause))
	return &refusedError{Reason: why, Saw: a.saw, Err: cause, text: text}
}

// doubt is every other error: the approval may have arrived.
func (a *attempt) doubt(cause error, format string, args ...any) error {
	text := fmt.Sprintf("approving the sidecar of pod %s: it may have been approved: %s", a.pod, fmt.Sprintf(format, args...))
	if cause == nil {
		return fmt.Errorf("%s; its health shows the outcome", text)
	}
	return fmt.Errorf("%s: %w; its health shows the outcome", text, a.tokens.Error(cause))
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
