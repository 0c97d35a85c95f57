package sidecar

import (
	"fmt"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kit"
	kind "drydock.dev/drydock/remediations/targets/sidecar"
)

type reason string

const (
	reasonChanged      reason = "Changed"      // the observation right before the approval does not allow it
	reasonWithheld     reason = "Withheld"     // the caller's mayStill returned an error, or its time had ended
	reasonUnauthorized reason = "Unauthorized" // there is no token, or a right is missing: a person must act
	reasonRejected     reason = "Rejected"     // the sidecar or the API server refused the approval
	reasonFailed       reason = "Failed"       // there was no connection
)

// refusedError means that certainly nothing was approved. Its text is one sentence for people.
type refusedError struct {
	Reason reason
	// Saw is the observation before the approval. Without one, its At is zero.
	Saw  kind.Observation
	Err  error // the cause; may be nil
	text string
}

func (e *refusedError) Error() string { return e.text }

// Unwrap returns the cause, for errors.Is.
func (e *refusedError) Unwrap() error { return e.Err }

// Is makes errors.Is match the engine's errors. Every refusal concerns only this pod, even one of a
// token: a pod's proxy may refuse a good token once by mistake.
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

type attempt struct {
	pod    remediations.Pod
	saw    kind.Observation
	tokens *redact.Keyring // tokens that no text may contain
}

func (a *attempt) refuse(why reason, cause error, format string, args ...any) error {
	cause = a.tokens.Error(cause)
	text := fmt.Sprintf("approving the sidecar of pod %s: nothing was approved: %s%s", a.pod, fmt.Sprintf(format, args...), because(cause))
	return &refusedError{Reason: why, Saw: a.saw, Err: cause, text: text}
}

func (a *attempt) doubt(cause error, format string, args ...any) error {
	text := fmt.Sprintf("approving the sidecar of pod %s: the sidecar may have been approved: %s", a.pod, fmt.Sprintf(format, args...))
	if cause == nil {
		return fmt.Errorf("%s; the next probe shows the outcome", text)
	}
	return fmt.Errorf("%s: %w; the next probe shows the outcome", text, a.tokens.Error(cause))
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
