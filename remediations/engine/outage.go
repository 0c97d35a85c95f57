package engine

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

const (
	// outageFirst is the wait before the first retry of a failed call, outageLongest the longest
	// wait. The wait doubles in between. A Node may wait longer: it is one of many, and its slot
	// must be free in between.
	outageFirst   = time.Second
	outageLongest = 30 * time.Second
	nodeLongest   = time.Minute
)

// outage remembers a failing call, so that it is retried after a wait, and not by every caller that
// needs it.
type outage struct {
	// since is when the call began to fail. Zero: it does not fail. The call is not retried before
	// again.
	since, again time.Time
	wait         time.Duration
	err          error
	// People were informed of the outage.
	told bool
}

func (o *outage) failed(now time.Time, err error, longest time.Duration) {
	if o.since.IsZero() {
		o.since, o.wait = now, outageFirst
	} else {
		o.wait = min(2*o.wait, longest)
	}
	o.again, o.err = now.Add(o.wait), err
}

func (o *outage) over() { *o = outage{} }

// due reports whether the call may be tried now. A time further ahead than any wait comes from a
// wrong clock.
func (o *outage) due(now time.Time) bool {
	return !now.Before(o.again) || o.again.Sub(now) > o.wait
}

// idle reports whether the call has not been tried for some time, because nothing needs it any
// more.
func (o *outage) idle(now time.Time) bool {
	return now.Sub(o.again) > 2*remediations.OutageFor
}

// retry makes the next pass come when the failing call is due. A call that was already due in this
// pass was tried, or was not needed. An immediate pass would change nothing, and nor would the one
// after it.
func (p *pass) retry(o outage) {
	if !o.since.IsZero() && o.again.After(p.now) && o.again.Before(p.next) {
		p.next = o.again
	}
}

// lasting reports whether the outage is long enough to inform people.
func (o *outage) lasting(now time.Time) bool {
	return lifecycle.Lost(o.since, now)
}
