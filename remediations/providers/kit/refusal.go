// Package kit has the parts that providers share. Refusal is the error of a call that did nothing.
// Holds collects the reasons against a step. Reporter turns errors into sentences. Exchange sends
// an HTTP request. If the request changes something, a Gate decides at the last moment whether it
// may be sent. Program runs a program. Final and Brief interpret an API server's errors, and List
// lists objects of other systems.
package kit

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// Concern is which machines a refusal concerns, and for how long. It decides when Drydock tries
// again.
type Concern string

const (
	// Machine concerns only the machine of the call, until a person acts.
	Machine Concern = "machine"
	// Unable means that the machine of the call can never do what this attempt requires. The
	// attempt counts as used, and the plan continues with its next step.
	Unable Concern = "unable"
	// While concerns only the machine of the call, until other work on it has ended.
	While Concern = "while"
	// Unreached concerns only the machine of the call: its own controller or host gives no usable
	// answer, or asks clients to wait.
	Unreached Concern = "unreached"
	// Passing concerns all machines, for a short time.
	Passing Concern = "passing"
	// Setup concerns all machines, until a person corrects the configuration.
	Setup Concern = "setup"
	// Account concerns all machines: the provider refuses Drydock's account, or the account lacks
	// rights.
	Account Concern = "account"
)

// Refusal is the error of a call that certainly did nothing. Text is one sentence for people. If
// the provider refuses Drydock's account (ErrAccount), the engine stops a policy only after calls
// for two machines were refused.
type Refusal struct {
	Why  Concern
	Text string
	// Again is how long the other side asks clients to wait.
	Again time.Duration
	// NeedsPerson is for Unreached: only a person can correct the cause, for example a certificate
	// that is not trusted.
	NeedsPerson bool
	// Cause is the underlying error, without secrets. It may be nil.
	Cause error

	whole bool // Text already contains the cause
}

// Refuse returns a refusal with the formatted sentence.
func Refuse(why Concern, format string, args ...any) *Refusal {
	return &Refusal{Why: why, Text: fmt.Sprintf(format, args...)}
}

func (e *Refusal) Error() string { return e.Text }

// Is reports whether target is the engine's error for this concern, or matches the refusal's cause.
func (e *Refusal) Is(target error) bool {
	switch target {
	case engine.ErrAccount:
		return e.Why == Account
	case engine.ErrUnable:
		return e.Why == Unable
	case engine.ErrLater:
		return e.Why == While || e.Why == Unreached || e.Why == Passing
	case engine.ErrPassing:
		return (e.Why == Passing || e.Why == Unreached && !e.NeedsPerson) && e.Again <= engine.ActAgain
	}
	return e.Cause != nil && errors.Is(e.Cause, target)
}

// Survey returns the refusal as the result of the check before a step.
func (e *Refusal) Survey() remediations.Survey {
	s := remediations.Survey{Trouble: e.Text, Again: remediations.AskMended}
	switch e.Why {
	case Passing:
		s.Fleetwide, s.Unreached, s.Again = true, true, max(remediations.AskPassing, e.Again)
	case Setup, Account:
		s.Fleetwide = true
	case While:
		s.Again = max(remediations.AskPassing, e.Again)
	case Unreached:
		s.Unreached = true
		if !e.NeedsPerson {
			s.Again = max(remediations.AskPassing, e.Again)
		}
	case Machine, Unable:
	}
	return s
}

// Wait returns how long the other side asks clients to wait, or zero.
func (e *Refusal) Wait() time.Duration { return e.Again }

// RetryAfter returns the wait in a Retry-After header, at most AskMended, or zero. A date in the
// header is ignored, because the other side's clock may be wrong.
func RetryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return 0
	}
	return min(time.Duration(min(seconds, 1<<20))*time.Second, remediations.AskMended)
}
