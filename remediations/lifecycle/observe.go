package lifecycle

import (
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// observe continues a repair that mode observe only records. It checks no guards, because a real
// repair would now wait for its proof. The record ends when the step's wait or the alert has ended,
// or when a real repair needs the target: that must not be delayed.
func (t *Base) observe(now time.Time) Decision {
	r := t.Record
	p := t.PolicyOf(r)
	if p == nil || p.Mode == remediations.ModeOff {
		return t.observed(fmt.Sprintf("policy %s is no longer configured, or off", r.Policy), now)
	}
	if d, ok := t.self.First(now); ok {
		return t.givesWay(d, now)
	}
	if t.Stale() {
		d := t.Look("asking Alertmanager about the alert of a would-be repair")
		d.Policy = p
		return d
	}
	switch due := remediations.Earlier(t.Config.WouldUntil(p, r), r.Deadline); {
	case !now.Before(due), t.ended(r.Cause, now):
		return t.observed("", now)
	case t.self.Elsewhere() != "":
		return t.observed(t.self.Elsewhere(), now)
	default:
		if d, ok := t.enforced(now); ok {
			return t.givesWay(d, now)
		}
		d := Decision{Verb: VerbHold, Reason: remediations.ReasonObserving, Message: r.Hold.Message, Policy: p, Recheck: due}
		return t.watch(d, now, LookAgain)
	}
}

func (t *Base) enforces(p *remediations.Policy) bool {
	return p != nil && p.Mode == remediations.ModeEnforce
}

func (t *Base) watch(d Decision, now time.Time, after time.Duration) Decision {
	if t.is.Looking == "" {
		return d
	}
	return t.LookAgain(d, now, after)
}

// enforced returns the decision about another alert whose policy has mode enforce, unless that
// would only hold or wait. A hold for an approval is returned, because a person can approve only
// what is on record.
func (t *Base) enforced(now time.Time) (Decision, bool) {
	for _, a := range t.self.Causes() {
		p := t.Config.Policy(a.Policy)
		if !t.enforces(p) || t.Over(a, now) {
			continue
		}
		switch d := t.self.Consider(p, a, now); d.Verb {
		case VerbHold, VerbWait:
			if d.Reason == remediations.ReasonAwaitingApproval {
				return d, true // a person can approve it once it is on record
			}
		default:
			return d, true
		}
	}
	return Decision{}, false
}

// givesWay ends the observed repair if d must write a record. The Node has only one record for the
// target, so the next pass decides d again.
func (t *Base) givesWay(d Decision, now time.Time) Decision {
	if d.Record == nil {
		return d
	}
	return t.observed("the observation ended for a repair by policy "+d.Policy.Name, now)
}

// An empty why means that the step's wait or the alert has ended.
func (t *Base) observed(why string, now time.Time) Decision {
	r, p := t.Record, t.PolicyOf(t.Record)
	at := r.Hold.Since
	w := &remediations.Would{Step: r.Step.Issued(), At: at, Until: remediations.Instant(t.Config.WouldUntil(p, r)), IllSince: at}
	name := r.Cause.Alert
	if a := t.AlertBy(r.Cause.Alert); a != nil {
		w.IllSince, name = remediations.Instant(remediations.Earlier(a.StartsAt, at)), a.Name
	}
	over := !t.Stale() && t.ended(r.Cause, now)
	if over && t.self.Sound() {
		w.WellAt = remediations.Instant(now)
	}
	ill, it := remediations.Instant(now).Sub(w.IllSince), t.is.What
	said := fmt.Sprintf("%s would have been issued at %s, for alert %s", w.Step, at.Format(time.RFC3339), name)
	switch {
	case w.Unnecessary():
		said += fmt.Sprintf("; %s got well by itself after %s, before the step's wait had ended: %s would have been unnecessary", it, text.Duration(ill), w.Step)
	case !w.WellAt.IsZero():
		said += fmt.Sprintf("; %s got well by itself after %s, when the step's wait had ended", it, text.Duration(ill))
	case over:
		said += fmt.Sprintf("; the alert ended after %s, and the node is not Ready", text.Duration(ill))
	case why == "":
		said += fmt.Sprintf("; the step's wait has ended, and the alert still fires after %s%s", text.Duration(ill), t.nextWould(p))
	default:
		said += fmt.Sprintf("; the alert had been firing for %s", text.Duration(ill))
	}
	if why != "" {
		said += "; " + why
	}
	d := t.End(remediations.OutcomeObserved, said, now)
	d.Ended.Would = w
	if t.self.Elsewhere() != "" {
		d.Prune = append(d.Prune, remediations.KeysOf(t.Alerts)...)
	}
	return d
}

// ended reports whether no Alertmanager has the alert, while Prometheus still evaluates its rule.
func (t *Base) ended(cause remediations.Cause, now time.Time) bool {
	if a := t.AlertBy(cause.Alert); a != nil {
		return t.Over(a, now)
	}
	return t.self.Verdict(cause).Gone && t.Snapshot.BlindCause(t.Config) == ""
}

func (t *Base) nextWould(p *remediations.Policy) string {
	if next, more := t.NextStep(p, t.Record, t.Record.Step); more {
		return fmt.Sprintf("; if the step had not cured it, %s would come next", next)
	}
	return "; if the step had not cured it, a person would have to look"
}

// saidAlready returns true for an alert that mode observe has already reported. The next step is
// not reported, because the effect of the first is unknown.
func (t *Base) saidAlready(p *remediations.Policy, a *remediations.Alert, now time.Time) (Decision, bool) {
	if p.Mode != remediations.ModeObserve {
		return Decision{}, false
	}
	starts := t.self.Verdict(remediations.Cause{Alert: a.Fingerprint}).StartsAt
	if starts.IsZero() {
		starts = a.StartsAt
	}
	for _, e := range t.Journal.History {
		if e.Outcome != remediations.OutcomeObserved || e.Would == nil || e.Policy != p.Name || e.Cause != a.Fingerprint {
			continue
		}
		last := e.Ended
		if !e.Would.WellAt.IsZero() {
			last = e.Would.IllSince // that episode has ended
		}
		if remediations.Instant(starts).After(last) {
			return Decision{}, false
		}
		d := Decision{Verb: VerbRest, Reason: remediations.ReasonObserving, Policy: p, Message: fmt.Sprintf("repair %s would have issued %s at %s; policy %s only observes; it reports this alert again when the alert has ended and fires again",
			e.ID, e.Would.Step, e.Would.At.Format(time.RFC3339), p.Name)}
		return t.watch(d, now, LookElsewhere), true
	}
	return Decision{}, false
}
