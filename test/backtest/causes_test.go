package backtest

import (
	"slices"
	"time"

	"drydock.dev/drydock/internal/backtest"
	"drydock.dev/drydock/remediations"
)

// Each function below looks for a cause in the world: in the state of the Nodes, the ledger,
// Alertmanager and the machines at that time.

// cause explains a difference between the live run and its replay. The report of the backtest names
// the cause.
type cause struct {
	said string
	of   func(c *comparison, d *difference) bool
}

// causes are all possible reasons of the replay for another decision.
var causes = []cause{
	{"The record has no approvals, pauses, requests and break-glass, so the replay has none. A silence is known only while Drydock held a repair for it.", (*comparison).people},
	{"Alertmanager answers each request, and the Watchdog is never late.", (*comparison).unanswered},
	{"A cordon in the record counts as a person's cordon, also if Drydock set it.", (*comparison).cordon},
	{
		"The record has no boot IDs, so a reboot that cured looks like a recovery. " +
			"Such a repair keeps its slot for its whole wait, and a breaker that waits for its proof opens again.", (*comparison).bootless,
	},
	{"A breaker records to the minute when the fleet became calm, so a call after that may come a minute sooner or later.", (*comparison).storm},
	{
		"Each difference from the past has consequences: a repair takes a slot, and its end begins a cooldown and changes a breaker that waits for it.",
		(*comparison).consequence,
	},
	{"Reads, writes and calls take no time. Live, decisions come later by the time that these take.", (*comparison).late},
}

// late is a difference in time. Both did the same, and not further apart than this machine was
// late. Or a hold lasted no longer than that. Or the alert ended before anything was done, and the
// live Drydock received it too late.
func (c *comparison) late(d *difference) bool {
	give := c.l.lag(d.from)
	if d.act != nil && d.live && c.first(d.act) {
		return slices.ContainsFunc(c.r.Repairs, func(r *backtest.Repair) bool {
			return r.Node == d.node && len(r.Steps) == 0 && !r.Ended.After(d.from.Add(sameTime)) && apart(r.Ended, d.from) <= give
		})
	}
	return (d.both || d.holds != nil) && apart(d.from, d.until) <= give
}

// people means that a person kept Drydock away from the node, and that Drydock reported it, or that
// a person requested the repair.
func (c *comparison) people(d *difference) bool {
	const silenced, paused = string(remediations.ReasonSilenced), string(remediations.ReasonPaused)
	switch {
	case d.both || d.opening != nil || d.end != nil:
		return false
	case d.act != nil && d.live:
		return d.act.asked
	case d.act != nil:
		return c.l.keptAway(d.node, d.from, 0) && c.heldLive(d, silenced, paused)
	}
	return c.seconds(d, func(at time.Time) bool { return c.l.keptAway(d.node, at, c.l.lag(at)) })
}

// unanswered means that the ledger shows that Drydock could not trust its data about alerts or
// leases, or that nothing confirmed an alert.
func (c *comparison) unanswered(d *difference) bool {
	blind := func(at time.Time) bool {
		p := c.l.pageAt(at)
		if p == nil {
			return false
		}
		frozen := false
		for _, b := range p.Status.Breakers {
			frozen = frozen || b.Frozen
		}
		return p.Status.Blind != "" || frozen || p.Status.Holds[remediations.ReasonAlertUnconfirmed] != ""
	}
	switch {
	case d.end != nil || d.both && d.opening == nil || d.act != nil && d.live:
		return false
	case d.opening != nil:
		for at := d.opening.from; d.other != nil && at.Before(c.l.until) && isOpen([]opening{*d.opening, *d.other}, at); at = at.Add(time.Second) {
			if blind(at) {
				return true
			}
		}
		return false
	}
	return c.seconds(d, func(at time.Time) bool { return c.around(at, blind) })
}

// cordon means that Drydock's own cordon was on the node, and that the replay held the node for it.
func (c *comparison) cordon(d *difference) bool {
	if d.holds == nil && (d.act == nil || !d.live) {
		return false
	}
	give := c.l.lag(d.from)
	if d.act != nil {
		give = 0 // Drydock's cordon after the call is not a cause
	}
	return c.l.cordoned(d.node, d.from, give) && c.heldReplayed(d, remediations.ReasonCordonedByOther)
}

// bootless is about a cure by a boot, which only the live run sees. The replay still waited for the
// proof of the step or for the cooldown after it. Or it judged the cure as a recovery, or opened a
// breaker that waited for the cure.
func (c *comparison) bootless(d *difference) bool {
	switch {
	case d.end != nil:
		e, r := d.end.live, d.end.replayed
		late := len(r.Steps) > 0 && (r.Over.IsZero() || !r.Over.After(r.Steps[len(r.Steps)-1].At.Add(stepWait+c.l.lag(e.Ended))))
		return c.cured(e) && r.Outcome != remediations.OutcomeRecovered && late
	case d.opening != nil:
		return d.other != nil && (d.other.until.IsZero() || d.other.until.After(d.opening.until)) && slices.ContainsFunc(c.l.ends, func(e ending) bool {
			return c.l.trials[e.ID] && c.cured(e) && apart(e.Ended, d.opening.until) <= c.l.lag(e.Ended)
		})
	case d.both || d.act != nil && !d.live && c.first(d.act):
		return false
	}
	return c.seconds(d, func(at time.Time) bool {
		give := c.l.lag(at)
		return slices.ContainsFunc(c.r.Repairs, func(r *backtest.Repair) bool {
			return r.Node == d.node && inFlight(r, at, give, cooldown+give) && slices.ContainsFunc(c.l.ends, func(e ending) bool {
				caused := d.act == nil || d.act.repair != e.ID // a boot does not cause the call that caused it
				return e.node == d.node && caused && c.cured(e) && e.Ended.After(r.Steps[0].At.Add(-give)) && !e.Ended.After(at.Add(give))
			})
		})
	})
}

// before returns the previous call of the same repair, or nil if the repair began with this call.
func (c *comparison) before(a *act) (out *act) {
	for _, o := range slices.Concat(c.l.acts, c.r.acts) {
		if o.repair == a.repair && o.at.Before(a.at) {
			out = &o
		}
	}
	return out
}

func (c *comparison) first(a *act) bool { return c.before(a) == nil }

// storm is about breakers. In the live run a breaker was open, or had closed shortly before, and
// the other run did the same at another time. The times differ by no more than a breaker's
// cooldown, which is less than a minute here.
func (c *comparison) storm(d *difference) bool {
	err := stormCooldown + c.l.lag(d.from)
	after := slices.ContainsFunc(c.l.openings, func(o opening) bool {
		return !d.from.Before(o.from) && (o.until.IsZero() || !d.from.After(o.until.Add(err)))
	})
	switch {
	case !after:
		return false
	case d.opening != nil:
		return d.other != nil && apart(d.from, d.until) <= err
	case d.holds != nil:
		const unhealthy = string(remediations.ReasonFleetUnhealthy)
		return d.until.Sub(d.from) <= err && (d.holds.replayed == unhealthy || slices.Contains(d.holds.live, unhealthy))
	case d.act != nil && !d.both:
		others := c.l.acts
		if d.live {
			others = c.r.acts
		}
		return slices.ContainsFunc(others, func(o act) bool { return o.node == d.node && o.step == d.act.step && apart(o.at, d.act.at) <= err })
	}
	return false
}

// consequence follows from another difference. The run without the call held the node for its limit
// or its breaker, while in the other run a slot was free or the breaker closed. Or both had already
// done different things about the same fault.
func (c *comparison) consequence(d *difference) bool {
	switch {
	case d.opening != nil || d.both && d.end == nil:
		return false
	case d.act != nil && !c.first(d.act):
		if c.next(d) {
			return true
		}
	case c.sameFault(d):
		return true
	}
	return d.end == nil && c.seconds(d, func(at time.Time) bool { return c.kept(d, at, true) || c.kept(d, at, false) })
}

// kept reports whether this run held the node at that time, because of a slot that the other run
// had free or a breaker that the other run had closed. A repair that has begun has its slot.
func (c *comparison) kept(d *difference, at time.Time, live bool) bool {
	slots, others := c.r.slots, c.l.slots
	mine, theirs := c.r.openings, c.l.openings
	if live {
		slots, others, mine, theirs = others, slots, theirs, mine
	}
	if (d.act == nil || c.first(d.act)) && c.heldBy(live, d, remediations.ReasonAtLimit) && c.around(at, func(at time.Time) bool {
		under := others(at, d.node)
		return slices.ContainsFunc(slots(at, d.node), func(node string) bool { return !slices.Contains(under, node) })
	}) {
		return true
	}
	closed := !isOpen(theirs, at) || !isOpen(theirs, at.Add(sameTime))
	return closed && c.heldBy(live, d, remediations.ReasonFleetUnhealthy) && c.around(at, func(at time.Time) bool { return isOpen(mine, at) })
}

// next follows from the previous call of the same repair, which differed already. When its turn
// came, the other run also made this call, or held the node, or had nothing left to cure. Running
// out of steps is not a cause.
func (c *comparison) next(d *difference) bool {
	was, others := c.before(d.act), c.r.acts
	if !d.live {
		others = c.l.acts
	}
	if !slices.ContainsFunc(c.known, func(k *difference) bool {
		return k.node == d.node && k.act != nil && k.act.step == was.step && (k.from.Equal(was.at) || k.until.Equal(was.at))
	}) {
		return false
	}
	i := slices.IndexFunc(others, func(o act) bool { return o.node == d.node && o.step == was.step && c.oneFault(d.node, o.at, was.at) })
	if i < 0 {
		return true // the repair had not begun
	}
	turn := others[i].at.Add(d.from.Sub(was.at))
	give := c.l.lag(turn)
	if slices.ContainsFunc(others, func(o act) bool {
		return o.repair == others[i].repair && o.step == d.act.step && apart(o.at, turn) <= give
	}) {
		return true
	}
	if outcome, over := c.ended(others[i].repair); !over.IsZero() && !over.After(turn.Add(give)) {
		return outcome != remediations.OutcomeExhausted
	}
	return c.around(turn, func(at time.Time) bool {
		return d.live && c.r.held(d.node, at) != "" || !d.live && len(c.l.held(d.node, at)) > 0
	})
}

// ended returns how and when this run's repair ended. It is zero if the repair did not end.
func (c *comparison) ended(repair string) (remediations.Outcome, time.Time) {
	for _, e := range c.l.ends {
		if e.ID == repair {
			return e.Outcome, e.Ended
		}
	}
	for _, r := range c.r.Repairs {
		if r.ID == repair {
			return r.Outcome, r.Over
		}
	}
	return "", time.Time{}
}

// sameFault reports whether, before, only one of the runs had made a call about the same fault of
// the node, and for a known cause.
func (c *comparison) sameFault(d *difference) bool {
	return slices.ContainsFunc(c.known, func(k *difference) bool {
		return k.node == d.node && k.act != nil && !k.both && !k.from.After(d.until.Add(c.l.lag(d.until))) && c.oneFault(d.node, k.from, d.from)
	})
}

// oneFault reports whether both times belong to one fault of the node, according to the record,
// including the cooldown after it.
func (c *comparison) oneFault(node string, a, b time.Time) bool {
	return slices.ContainsFunc(c.r.Repairs, func(r *backtest.Repair) bool {
		ends := c.l.until
		if !r.Ended.IsZero() {
			ends = r.Ended.Add(cooldown + c.l.lag(r.Ended))
		}
		in := func(at time.Time) bool { return !at.Before(r.Began) && !at.After(ends) }
		return r.Node == node && in(a) && in(b)
	})
}

// cured reports whether the repair cured its node by a boot of the machine.
func (c *comparison) cured(e ending) bool {
	return e.Outcome == remediations.OutcomeRecovered && slices.ContainsFunc(c.l.boots[e.node], func(b time.Time) bool {
		return !b.Before(e.Began) && !b.After(e.Ended.Add(time.Second))
	})
}

// heldBy says that this one of the two held the node for the reason, and so did not call.
func (c *comparison) heldBy(live bool, d *difference, reason remediations.Reason) bool {
	switch {
	case d.holds != nil && live:
		return slices.Contains(d.holds.live, string(reason))
	case d.holds != nil:
		return d.holds.replayed == string(reason)
	case d.live == live:
		return false // it called
	case live:
		return c.heldLive(d, string(reason))
	}
	return c.heldReplayed(d, reason)
}

func (c *comparison) heldLive(d *difference, reasons ...string) bool {
	return c.around(d.from, func(at time.Time) bool {
		return slices.ContainsFunc(c.l.held(d.node, at), func(h string) bool { return slices.Contains(reasons, h) })
	})
}

func (c *comparison) heldReplayed(d *difference, reason remediations.Reason) bool {
	return c.around(d.from, func(at time.Time) bool { return c.r.held(d.node, at) == string(reason) })
}

// seconds asks about each second of a difference.
func (c *comparison) seconds(d *difference, is func(at time.Time) bool) bool {
	for at := d.from; !at.After(d.until); at = at.Add(time.Second) {
		if !is(at) {
			return false
		}
	}
	return true
}

// around asks about each second that the two may be apart, and says whether it is so in one of
// them.
func (c *comparison) around(at time.Time, is func(at time.Time) bool) bool {
	give := c.l.lag(at)
	for d := -give; d <= give; d += time.Second {
		if is(at.Add(d)) {
			return true
		}
	}
	return false
}
