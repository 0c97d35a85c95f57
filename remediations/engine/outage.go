package engine

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

const (
	// The wait after a failed call starts with outageFirst and doubles. nodeLongest is for writes
	// on one Node, which may wait longer because they delay no other node.
	outageFirst   = time.Second
	outageLongest = 30 * time.Second
	nodeLongest   = time.Minute
)

type outage struct {
	// since is zero while the call does not fail.
	since, again time.Time
	wait         time.Duration
	err          error
	told         bool
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

// due is also true if the retry time is further ahead than the wait: the clock was set back.
func (o *outage) due(now time.Time) bool {
	return !now.Before(o.again) || o.again.Sub(now) > o.wait
}

// idle reports whether nothing has needed the call for a long time.
func (o *outage) idle(now time.Time) bool {
	return now.Sub(o.again) > 2*remediations.OutageFor
}

// retry does nothing if the retry time is before this pass: the pass then tried the call, or did
// not need it.
func (p *pass) retry(o outage) {
	if !o.since.IsZero() && o.again.After(p.now) && o.again.Before(p.next) {
		p.next = o.again
	}
}

// lasting reports whether the outage has lasted long enough to inform people.
func (o *outage) lasting(now time.Time) bool {
	return lifecycle.Lost(o.since, now)
}
