package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// These are the checks about providers that do not answer: no step may be skipped because of a
// provider's outage.

const (
	// outageSays is the provider's error about all machines. muteSays is its error about one
	// machine.
	outageSays = "the API does not answer"
	muteSays   = "the controller of the machine does not answer"
)

// ofAll and ofMachine are errors of calls that report which machines they concern.
type (
	ofAll     struct{ error }
	ofMachine struct{ error }
)

func (e ofAll) Unwrap() error     { return e.error }
func (e ofMachine) Unwrap() error { return e.error }
func (ofAll) Survey() remediations.Survey {
	return remediations.Survey{Fleetwide: true, Unreached: true}
}
func (ofMachine) Survey() remediations.Survey { return remediations.Survey{Unreached: true} }

// answerGiven is an answer to a question about a node's machine. alone means that only this machine
// cannot be reached.
type answerGiven struct {
	at    time.Time
	by    *instance
	alone bool
}

// tryMade is an attempt that the provider refused, and whether because of the machine.
type tryMade struct {
	attempt string
	alone   bool
}

// tried notes the result of an attempt. An attempt that is repeated within its call counts once,
// with its last answer.
func (w *world) tried(m Machine, err error) {
	of := ofMachine{}
	now := tryMade{m.Attempt, errors.As(err, &of)}
	all := w.tries[m.Node]
	if n := len(all); n > 0 && all[n-1].attempt == m.Attempt {
		all = all[:n-1]
	}
	w.tries[m.Node] = append(all, now)
}

// checkPassed: a step whose provider must be reached may be skipped only if the plan allows it, and
// if the machine alone was unreachable for ten minutes or five calls. Answers to another process
// may not be on record, so they do not end that time here.
func (w *world) checkPassed(i *instance, cur *corev1.Node, was, next *remediations.Record) {
	before := 0
	if was != nil && was.ID == next.ID {
		before = len(was.Passed)
	}
	if len(next.Passed) <= before {
		return
	}
	passed := next.Passed[len(next.Passed)-1]
	if strings.Contains(passed.Why, outageSays) {
		w.fail("Outage: %s of %s was skipped, and its provider answers about no machine: %s", passed.Name, cur.Name, passed.Why)
	}
	called, asked := strings.Contains(passed.Why, "calls in a row failed"), strings.Contains(passed.Why, muteSays)
	p := i.config.PolicyOf(next.Policy, cur)
	if p == nil || (!called && !asked) || (asked && i.config.Remediation(passed.Name).PassedOver) {
		return
	}
	if !p.Plan[passed.Index].ContinueUnreachable {
		w.fail("Outage: %s of %s was skipped, and its policy holds it: %s", passed.Name, cur.Name, passed.Why)
	}
	if asked && time.Since(w.mutedSince(i, cur.Name)) < 10*time.Minute {
		w.fail("Outage: %s of %s was skipped, and its machine alone could not be asked since %s only", passed.Name, cur.Name, w.mutedSince(i, cur.Name))
	}
	if n := w.triedAlone(cur.Name); called && n < 5 {
		w.fail("Outage: %s of %s was skipped, and %d calls in a row failed because of its machine", passed.Name, cur.Name, n)
	}
}

// outageKnockOuts remove the clauses that distinguish a provider's outage from a machine's.
func outageKnockOuts() map[string]knockOut {
	mute := func(w *world) { w.mood, w.mute = providerMood{}, "n0" }
	config := func(c *remediations.Config) { *c = *continues() }
	return map[string]knockOut{
		"an outage of the whole provider skips no step": {
			config: config, speaks: "Outage: reboot of n0 was skipped, and its provider answers about no machine",
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, _ time.Time) {
					if s.Survey != nil && s.Survey.Unreached {
						v := *s.Survey
						v.Fleetwide = false
						s.Survey = &v
					}
				})
			},
			tale: func(_ *testing.T, w *world) {
				w.failFor(func() { w.mood = out })
				w.pass(20 * time.Minute)
			},
		},
		"an outage takes off the record that the machine alone is out of reach": {
			config: config, speaks: "Outage: reboot of n0 was skipped, and its machine alone could not be asked since",
			take: func(h *hands) {
				h.decision(func(_ *lifecycle.State, d *lifecycle.Decision) {
					if d.Fleetwide && d.Reason == remediations.ReasonProviderUnreachable {
						d.Record = nil
					}
				})
			},
			tale: func(_ *testing.T, w *world) {
				w.failFor(func() { mute(w) })
				w.pass(time.Minute)
				w.do(func() { w.mood = out })
				w.pass(90 * time.Second)
				w.do(func() { mute(w) })
				w.pass(11 * time.Minute)
			},
		},
		"time in which nobody asked counts for nothing": {
			config: config, speaks: "Outage: reboot of n0 was skipped, and its machine alone could not be asked since",
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, _ time.Time) {
					if r := s.Journal.Record; r != nil && r.Hold != nil && r.Hold.Until != nil {
						r, later := r.Clone(), r.Hold.Until.Add(time.Hour)
						r.Hold.Until, s.Journal.Record = &later, r
					}
				})
			},
			tale: func(_ *testing.T, w *world) {
				w.failFor(func() { mute(w) })
				w.pass(time.Minute)
				w.do(w.endAll)
				w.pass(20 * time.Minute)
				w.startWith(w.config, 0)
				w.pass(5 * time.Minute)
			},
		},
		"calls that fail in an outage skip no step": {
			config: config, speaks: "Outage: reboot of n0 was skipped, and 0 calls in a row failed because of its machine",
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, _ time.Time) {
					if s.Call != nil {
						call := *s.Call
						call.Alone = true
						s.Call = &call
					}
				})
			},
			tale: func(_ *testing.T, w *world) {
				w.failFor(func() { w.mood.unread = true })
				w.pass(time.Hour)
			},
		},
		"a plan goes on without a machine only where its step says so": {
			config: func(c *remediations.Config) { *c = *wholeConfig() }, speaks: "Outage: reboot of n0 was skipped, and its policy holds it",
			take: func(h *hands) {
				h.config(func(_ *remediations.Config, p *remediations.Policy) { *p = *continues().Policies[0] })
			},
			tale: func(_ *testing.T, w *world) {
				w.failFor(func() { mute(w) })
				w.pass(20 * time.Minute)
			},
		},
	}
}

// mutedSince returns since when every answer to a question showed that the machine alone cannot be
// reached.
func (w *world) mutedSince(i *instance, node string) time.Time {
	since := time.Now()
	all := w.answers[node]
	for n := len(all) - 1; n >= 0; n-- {
		switch a := all[n]; {
		case a.alone && since.Sub(a.at) < 10*time.Minute:
			since = a.at
		case a.alone || a.by == i:
			return since
		}
	}
	return since
}

// triedAlone counts the last attempts that failed because of the machine.
func (w *world) triedAlone(node string) (count int) {
	all := w.tries[node]
	for n := len(all) - 1; n >= 0 && all[n].alone; n-- {
		count++
	}
	return count
}
