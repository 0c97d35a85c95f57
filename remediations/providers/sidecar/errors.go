package sidecar

import (
	"fmt"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kit"
	kind "drydock.dev/drydock/remediations/targets/sidecar"
)

// Reason says why nothing was approved.
type Reason string

// The reasons, all of them.
const (
	Changed      Reason = "Changed"      // the look right before it does not allow it
	Withheld     Reason = "Withheld"     // the caller's mayStill said no, or its time was over
	Unauthorized Reason = "Unauthorized" // no token, or a right is missing: a person must act
	Rejected     Reason = "Rejected"     // understood, and refused
	Failed       Reason = "Failed"       // no connection
)

// RefusedError means that certainly nothing was approved. Error is one sentence for people: the pod, what happened and
// what to do.
type RefusedError struct {
	Reason Reason
	// Saw is the look that came before; its At is zero if there was none.
	Saw  kind.Observation
	Err  error // the cause; may be nil
	text string
}

func (e *RefusedError) Error() string { return e.text }

// Unwrap returns the cause, for errors.Is.
func (e *RefusedError) Unwrap() error { return e.Err }

// Is finds the engine's errors. All of it concerns this one pod: also a proxy that refuses the token, which may be wrong once.
func (e *RefusedError) Is(target error) bool {
	r := kit.Refusal{Why: kit.While, Text: e.text}
	switch e.Reason {
	case Unauthorized:
		r.Why, r.Mended = kit.Unreached, true
	case Rejected:
		r.Why = kit.Machine
	case Changed, Withheld, Failed:
	}
	return r.Is(target)
}

// attempt is one approval.
type attempt struct {
	pod    remediations.Pod
	saw    kind.Observation
	tokens *redact.Keyring // to keep them out of texts
}

func (a *attempt) refuse(why Reason, cause error, format string, args ...any) error {
	cause = a.tokens.Error(cause)
	text := fmt.Sprintf("approving the sidecar of pod %s: nothing was approved: %s%s", a.pod, fmt.Sprintf(format, args...), because(cause))
	return &RefusedError{Reason: why, Saw: a.saw, Err: cause, text: text}
}

// doubt is every other error: the approval may have arrived.
func (a *attempt) doubt(cause error, format string, args ...any) error {
	text := fmt.Sprintf("approving the sidecar of pod %s: it may have been approved: %s", a.pod, fmt.Sprintf(format, args...))
	if cause == nil {
		return fmt.Errorf("%s; its health tells", text)
	}
	return fmt.Errorf("%s: %w; its health tells", text, a.tokens.Error(cause))
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
