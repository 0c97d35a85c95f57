package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

const (
	// holdTold is how long a fleet-wide hold must last before each held node gets its own Event.
	// Before that, there is one Event for all nodes, attached to Drydock's ledger. A fleet-wide
	// hold concerns many nodes, and most of these holds are short.
	holdTold = 10 * time.Minute
	// holdsApart is the shortest time between two Events about single nodes. Without it, thousands
	// of nodes that have been held since the same time would get their Events together.
	holdsApart = time.Second
)

// longHold is a hold of the whole fleet, as it applies to one target: the reason, the message, and
// the start.
type longHold struct {
	reason  remediations.Reason
	message string
	since   time.Time
	of      Trail
	about   *remediations.Object
	// pass is the number of the last pass with this hold.
	pass int
	// queued is true once the Event about this hold is in longHolds.due, and stays true after it
	// was sent.
	queued bool
}

// longHolds are the fleet-wide holds of all targets, and the queue of targets whose Events are due.
type longHolds struct {
	held map[target]*longHold
	due  []target
	// sent is when the last of these Events was sent. timer fires when the next one may be sent. It
	// is nil if no Event waits.
	sent  time.Time
	timer clock.Timer
}

// follow records how long a fleet-wide hold has held the target. If that is long enough, it queues
// an Event. A decision that only waits for an observation does not end the hold.
func (p *pass) follow(of target, r *remediations.Record, about *remediations.Object, d lifecycle.Decision) {
	h := p.long.held[of]
	switch {
	case d.Verb == lifecycle.VerbLook && h != nil:
		h.pass = p.passes
		return
	case d.Verb != lifecycle.VerbHold || !d.Fleetwide:
		return
	case h == nil || h.reason != d.Reason:
		h = &longHold{reason: d.Reason, since: p.now}
		p.long.held[of] = h
	}
	if d.Record != nil {
		r = d.Record
	}
	h.message, h.of, h.about, h.pass = d.Message, trailOf(r), about, p.passes
	if !h.queued && p.now.Sub(h.since) >= holdTold {
		h.queued = true
		p.long.due = append(p.long.due, of)
	}
}

// forgetHolds drops the holds that were not active in this pass.
func (e *Engine) forgetHolds() {
	maps.DeleteFunc(e.long.held, func(_ target, h *longHold) bool { return h.pass != e.passes })
	e.long.due = slices.DeleteFunc(e.long.due, func(of target) bool { return e.long.held[of] == nil || !e.long.held[of].queued })
}

// nextHold returns a channel that fires when the next Event about a long hold may be sent. It
// returns nil if no Event waits.
func (e *Engine) nextHold() <-chan time.Time {
	if e.long.timer == nil {
		if len(e.long.due) == 0 {
			return nil
		}
		e.long.timer = e.Clock.NewTimer(max(0, e.long.sent.Add(holdsApart).Sub(e.Clock.Now())))
	}
	return e.long.timer.C()
}

// tellHold sends the next Event about a long hold. It sends one Event for each repair and reason.
func (e *Engine) tellHold() {
	if e.long.timer != nil {
		e.long.timer.Stop()
		e.long.timer = nil
	}
	for len(e.long.due) > 0 {
		of := e.long.due[0]
		e.long.due = e.long.due[1:]
		h := e.long.held[of]
		if h == nil || !e.remember(of.node).emitted.First(fmt.Sprintf("long/%s/%s/%s/%s", h.reason, h.of.Repair, of.kind, of.name), 256) {
			continue
		}
		e.long.sent = e.Clock.Now()
		e.Events.Event(of.eventsAbout(h.about), Event{
			Warning: HeldIsWarning(h.reason), Reason: "RepairHeld", Action: string(h.reason) + "-" + h.of.Repair, Of: h.of, About: h.about,
			Note: fmt.Sprintf("%s: %s (has held since %s)", h.reason, h.message, h.since.UTC().Format(time.RFC3339)),
		})
		return
	}
}

// eventsAbout returns the name of the target's Node. It returns an empty name if the target's
// Events are about another object.
func (of target) eventsAbout(about *remediations.Object) string {
	if about != nil {
		return ""
	}
	return of.node
}

// HeldIsWarning reports whether an Event about a hold with this reason has the type Warning,
// because a person should check it. Holds with other reasons end by themselves in the normal course
// of a repair.
func HeldIsWarning(r remediations.Reason) bool {
	return r != remediations.ReasonTooYoung && r != remediations.ReasonCooldown && r != remediations.ReasonOutsideWindow
}
