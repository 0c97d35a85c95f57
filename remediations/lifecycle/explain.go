package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
)

// Source is a set of the places where a guard reads its facts, one bit for each place.
type Source uint8

const (
	// OnNode means that the guard reads the Node itself.
	OnNode Source = 1 << iota
	// OnAlerts means that the guard reads the answers of the Alertmanagers.
	OnAlerts
	// OnLeases means that the guard reads the leases of all nodes.
	OnLeases
	// OnFleet means that the guard reads all Nodes.
	OnFleet
	// OnLedger means that the guard reads Drydock's ledger.
	OnLedger
)

// Standing is the result of one guard for a candidate, in words for people.
type Standing string

const (
	GuardPassed Standing = "passed"
	GuardHolds  Standing = "holds"
	// GuardNotSeen means that the result is unknown, because a source of the guard was not read.
	GuardNotSeen Standing = "not seen"
	// GuardOtherKind means that the guard does not apply to this kind of target. GuardOtherStep
	// means that it does not apply to this step.
	GuardOtherKind Standing = "not for this kind of target"
	GuardOtherStep Standing = "not for this step"
)

// GuardAnswer is one guard's answer about a candidate.
type GuardAnswer struct {
	Reason   remediations.Reason `json:"reason"`
	Standing Standing            `json:"standing"`
	// Message says what the guard found. It is empty if the guard does not apply to the candidate's
	// kind.
	Message string `json:"message,omitempty"`
	// Until is when the guard stops holding. It is nil if that time is unknown.
	Until *time.Time `json:"until,omitempty"`
}

// Explain returns the answers of all guards, in their order. It does not stop at the first guard
// that holds the repair. unseen has the sources that the caller did not read, each with the reason.
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

// unseen returns the reasons why sources of the set were not read. It returns "" if all were read.
func (s Source) unseen(why map[Source]string) string {
	var out []string
	for one := OnNode; one <= OnLedger; one <<= 1 {
		if s&one != 0 && why[one] != "" {
			out = append(out, why[one])
		}
	}
	return strings.Join(out, "; ")
}

// FirstHold returns the answer of the first guard that holds the repair, or nil if no guard does.
func FirstHold(answers []GuardAnswer) *GuardAnswer {
	i := slices.IndexFunc(answers, func(a GuardAnswer) bool { return a.Standing == GuardHolds })
	if i < 0 {
		return nil
	}
	return &answers[i]
}
