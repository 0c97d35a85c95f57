package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
)

// Source is a set of the places where a guard reads its facts.
type Source uint8

const (
	OnNode Source = 1 << iota
	OnAlerts
	OnLeases
	OnFleet
	OnLedger
)

// Standing is the result of one guard, in words for people.
type Standing string

const (
	GuardPassed Standing = "passed"
	GuardHolds  Standing = "holds"
	// GuardNotSeen means that a source of the guard was not read.
	GuardNotSeen Standing = "not seen"
	// These mean that the guard does not apply.
	GuardOtherKind Standing = "not for this kind of target"
	GuardOtherStep Standing = "not for this step"
)

// GuardAnswer is one guard's answer about a candidate.
type GuardAnswer struct {
	Reason   remediations.Reason `json:"reason"`
	Standing Standing            `json:"standing"`
	// Message is what the guard found. It is empty if the guard does not apply.
	Message string `json:"message,omitempty"`
	// Until is when the guard stops holding, or nil if that is unknown.
	Until *time.Time `json:"until,omitempty"`
}

// Explain returns the answers of all guards, in their order. unseen has the sources that were not
// read, with the reason.
func (c *Candidate) Explain(unseen map[Source]string) []GuardAnswer {
	known := map[Source]string{}
	if c.Snapshot == nil || c.Snapshot.AskedAt.IsZero() {
		known[OnAlerts] = "no Alertmanager was asked"
	}
	if c.Heartbeats == nil {
		known[OnLeases] = "the leases of the nodes were not read"
	}
	maps.Copy(known, unseen)
	var out []GuardAnswer
	for _, g := range c.guards() {
		out = append(out, g.answer(c, known))
	}
	return out
}

func (g Guard) answer(c *Candidate, unseen map[Source]string) GuardAnswer {
	a := GuardAnswer{Reason: g.Reason}
	switch {
	case !g.binds(c.Kind):
		a.Standing = GuardOtherKind
		return a
	case !g.binding(c):
		a.Standing, a.Message = GuardOtherStep, fmt.Sprintf("%s does not disrupt the node", c.Step.Name)
		return a
	}
	if why := g.rests.unseen(unseen); why != "" {
		a.Standing, a.Message = GuardNotSeen, why
		return a
	}
	if f := g.finds(c); f != nil {
		a.Standing, a.Message = GuardHolds, f.Message
		if !f.Until.IsZero() {
			until := remediations.Instant(f.Until)
			a.Until = &until
		}
		return a
	}
	if g.Reason == remediations.ReasonNotWitnessed {
		if unread := c.unread(); unread != nil {
			a.Standing, a.Message = GuardNotSeen, "not read: "+strings.Join(unread, ", ")
			return a
		}
	}
	a.Standing, a.Message = GuardPassed, g.passed(c)
	return a
}

func (s Source) unseen(why map[Source]string) string {
	var out []string
	for one := OnNode; one <= OnLedger; one <<= 1 {
		if s&one != 0 && why[one] != "" {
			out = append(out, why[one])
		}
	}
	return strings.Join(out, "; ")
}

// FirstHold returns the first guard that holds the repair, or nil.
func FirstHold(answers []GuardAnswer) *GuardAnswer {
	i := slices.IndexFunc(answers, func(a GuardAnswer) bool { return a.Standing == GuardHolds })
	if i < 0 {
		return nil
	}
	return &answers[i]
}
