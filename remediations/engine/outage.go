package engine

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

const (
	// outageFirst is the wait before the first retry of a failed call. The wait doubles with each
	// further failure. outageLongest is the longest wait, and nodeLongest the longest wait for
	// writes on one Node. A Node may wait longer because it takes no slot while it waits, so it
	// delays no other node.
	outageFirst   = time.Second
	outageLongest = 30 * time.Second
	nodeLongest   = time.Minute
)

// outage describes a call that keeps failing. It makes all callers wait before the next retry.
type outage struct {
	// since is when the call began to fail. Zero means that it does not fail. again is when the
	// call may be retried.
	since, again time.Time
	wait         time.Duration
	err          error
	// This field is true once an Event about the outage was sent.
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

// due reports whether the call may be tried now. If the retry time is further ahead than the wait,
// the clock was set back, and the call may be tried.
func (o *outage) due(now time.Time) bool {
	return !now.Before(o.again) || o.again.Sub(now) > o.wait
}

// idle reports whether the call has not been tried for a long time, because nothing needs it any
// more.
func (o *outage) idle(now time.Time) bool {
	return now.Sub(o.again) > 2*remediations.OutageFor
}

// retry lets the next pass begin when the failing call may be retried. It does nothing if that time
// is before the start of this pass. This pass has then tried the call, or did not need it.
func (p *pass) retry(o outage) {
	if !o.since.IsZero() && o.again.After(p.now) && o.again.Before(p.next) {
		p.next = o.again
	}
}

// lasting reports whether the outage has lasted long enough to inform people.
func (o *outage) lasting(now time.Time) bool {
	return lifecycle.Lost(o.since, now)
}
