// Package kit has what providers share. Refusal is the error of a call that did nothing, Holds
// collects what forbids a step, and Reporter turns errors into sentences. Gate is the gate for the
// one request that changes something, which Exchange sends, and Program runs a program. Final and
// Brief interpret an API server's answers, and List lists objects of other systems.
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

// Concern is what a refusal is about, and so when to try again.
type Concern string

// The concerns, all of them.
const (
	// Machine: this machine, until a person acts.
	Machine Concern = "machine"
	// Unable: this machine can never do what this attempt asks. The attempt is spent, and the plan
	// continues.
	Unable Concern = "unable"
	// While: this machine, until the work that occupies it has ended.
	While Concern = "while"
	// Unreached: this machine. Its own controller or host gives no usable answer, or asks clients
	// to wait.
	Unreached Concern = "unreached"
	// Passing: all machines, for a moment.
	Passing Concern = "passing"
	// Setup: all machines, until a person corrects the configuration.
	Setup Concern = "setup"
	// Account: all machines. The provider refuses Drydock's account or its rights.
	Account Concern = "account"
)

// Refusal is one sentence for people about a call that certainly did nothing: what it concerns, and
// when to try again. The answer of one machine's BMC or host concerns that machine. The engine
// stops a policy only when a second call was refused for the account, too.
type Refusal struct {
	Why  Concern
	Text string
	// Again is how long the other side asks clients to wait; zero: it does not say.
	Again time.Duration
	// Only a person can correct it, although it is Unreached, for example a certificate that
	// is not trusted.
	NeedsPerson bool
	// Cause is without secrets; it may be nil.
	Cause error

	whole bool // Text has the cause already
}

// Refuse returns a refusal with that sentence.
func Refuse(why Concern, format string, args ...any) *Refusal {
	return &Refusal{Why: why, Text: fmt.Sprintf(format, args...)}
}

func (e *Refusal) Error() string { return e.Text }

// Is matches the engine's errors, and this refusal's cause.
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

// Survey returns the refusal as the result of a survey before a step.
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

// Wait returns how long the next call must wait.
func (e *Refusal) Wait() time.Duration { return e.Again }

// RetryAfter returns how long an answer asks clients to wait. A date is ignored, because it depends
// on the other side's clock, which may be wrong.
func RetryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return 0
	}
	return min(time.Duration(min(seconds, 1<<20))*time.Second, remediations.AskMended)
}
