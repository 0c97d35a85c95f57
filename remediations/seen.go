package remediations

import "time"

// seen is when a target that is looked at was last looked at; zero: it was not.
type seen time.Time

// older says that it was not seen within the time.
func (at seen) older(now time.Time, within time.Duration) bool {
	return time.Time(at).IsZero() || now.Sub(time.Time(at)) >= within
}

// again makes the decision one that looks again after the time.
func (at seen) again(d Decision, now time.Time, after time.Duration) Decision {
	if at.older(now, after) {
		d.Ask.Sighting = true
		return d
	}
	if due := time.Time(at).Add(after); d.Recheck.IsZero() || due.Before(d.Recheck) {
		d.Recheck = due
	}
	return d
}

// see is the decision to look.
func see(why string, p *Policy) Decision {
	return Decision{Verb: Look, Ask: Ask{Sighting: true}, Policy: p, Message: why}
}
