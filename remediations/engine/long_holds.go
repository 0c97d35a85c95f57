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
	// Most of these holds are short and concern many nodes.
	holdTold = 10 * time.Minute
	// holdsApart keeps thousands of nodes, held since the same time, from getting their Events
	// together.
	holdsApart = time.Second
)

type longHold struct {
	reason  remediations.Reason
	message string
	since   time.Time
	of      Trail
	about   *remediations.Object
	pass    int
	// queued stays true after the Event was sent.
	queued bool
}

type longHolds struct {
	held  map[target]*longHold
	due   []target
	sent  time.Time
	timer clock.Timer
}

// follow queues an Event once a fleet-wide hold has lasted long enough. A decision that only waits
// for an observation does not end the hold.
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

func (e *Engine) forgetHolds() {
	maps.DeleteFunc(e.long.held, func(_ target, h *longHold) bool { return h.pass != e.passes })
	e.long.due = slices.DeleteFunc(e.long.due, func(of target) bool { return e.long.held[of] == nil || !e.long.held[of].queued })
}

func (e *Engine) nextHold() <-chan time.Time {
	if e.long.timer == nil {
		if len(e.long.due) == 0 {
			return nil
		}
		e.long.timer = e.Clock.NewTimer(max(0, e.long.sent.Add(holdsApart).Sub(e.Clock.Now())))
	}
	return e.long.timer.C()
}

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

func (of target) eventsAbout(about *remediations.Object) string {
	if about != nil {
		return ""
	}
	return of.node
}

// HeldIsWarning reports whether a person should look at a hold with this reason. Other holds end by
// themselves.
func HeldIsWarning(r remediations.Reason) bool {
	return r != remediations.ReasonTooYoung && r != remediations.ReasonCooldown && r != remediations.ReasonOutsideWindow
}
