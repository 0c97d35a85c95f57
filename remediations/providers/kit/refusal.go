// Package kit has the parts that providers share. Refusal is the error of a call that did nothing.
// Holds collects what forbids a step. Reporter turns errors into sentences. Exchange sends an HTTP
// request, and a Gate decides right before whether a request that changes something may be sent.
// Program runs a program. Final and Brief interpret an API server's errors, and List lists objects
// of other systems.
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

// Concern says what a refusal concerns (one machine or all), and how long the obstacle lasts. It
// decides when Drydock tries again.
type Concern string

// The concerns, by how many machines the obstacle affects and for how long.
const (
	// Machine concerns this machine, until a person acts.
	Machine Concern = "machine"
	// Unable concerns this machine, which can never do what this attempt requires. The attempt
	// counts as used, and the plan continues.
	Unable Concern = "unable"
	// While concerns this machine, until work that is in progress on it has ended.
	While Concern = "while"
	// Unreached concerns this machine. Its own controller or host gives no usable answer, or asks
	// clients to wait.
	Unreached Concern = "unreached"
	// Passing concerns all machines, for a moment.
	Passing Concern = "passing"
	// Setup concerns all machines, until a person corrects the configuration.
	Setup Concern = "setup"
	// Account concerns all machines. The provider refuses Drydock's account, or the account lacks
	// rights.
	Account Concern = "account"
)

// Refusal is the error of a call that certainly did nothing. It has one sentence for people, says
// what it concerns, and when to try again.
//
// An answer of one machine's BMC or host concerns that machine alone. The engine stops a policy for
// ErrAccount only after calls for two machines were refused with it.
type Refusal struct {
	Why  Concern
	Text string
	// Again is how long the other side asks clients to wait. It is zero if the other side did not
	// ask.
	Again time.Duration
	// NeedsPerson means that the refusal is Unreached, but only a person can correct the cause. An
	// example is a certificate that is not trusted.
	NeedsPerson bool
	// Cause has no secrets. It may be nil.
	Cause error

	whole bool // Text already contains the cause
}

// Refuse returns a refusal with the formatted sentence.
func Refuse(why Concern, format string, args ...any) *Refusal {
	return &Refusal{Why: why, Text: fmt.Sprintf(format, args...)}
}

func (e *Refusal) Error() string { return e.Text }

// Is matches the engine's error for this concern, and the refusal's cause.
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

// Survey returns the refusal as the result of a provider's Survey, the check before a step.
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

// Wait returns how long the other side asks clients to wait. It is zero if the other side did not
// ask.
func (e *Refusal) Wait() time.Duration { return e.Again }

// RetryAfter returns the seconds of an answer's Retry-After header, at most AskMended. A date in
// the header is ignored, because it depends on the other side's clock, which may be wrong.
func RetryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return 0
	}
	return min(time.Duration(min(seconds, 1<<20))*time.Second, remediations.AskMended)
}
