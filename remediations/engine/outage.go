package engine

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

const (
	// outageFirst is how soon a call that failed is tried again, outageLongest how late while it fails on. The time in
	// between doubles. A Node may wait for longer: it is one of many, and its slot must be free in between.
	outageFirst   = time.Second
	outageLongest = 30 * time.Second
	nodeLongest   = time.Minute
)

// outage remembers a call that fails, so that it is tried again after a while, and not by everybody who needs it.
type outage struct {
	// since is when it began to fail; zero: it does not. It is not tried before again.
	since, again time.Time
	wait         time.Duration
	err          error
	// told: people know.
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

// due says that it may be tried now. A time that lies further ahead than any wait is that of a clock that was wrong.
func (o *outage) due(now time.Time) bool {
	return !now.Before(o.again) || o.again.Sub(now) > o.wait
}

// idle says that it has not been tried for some time, because nothing needs it any more.
func (o *outage) idle(now time.Time) bool {
	return now.Sub(o.again) > 2*remediations.OutageFor
}

// retry has the next pass come when what fails is due. What was due already in this pass was tried, or nobody needed it: a
// pass at once would find it no different, and the next one as well.
func (p *pass) retry(o outage) {
	if !o.since.IsZero() && o.again.After(p.now) && o.again.Before(p.next) {
		p.next = o.again
	}
}

// lasting says that people should know.
func (o *outage) lasting(now time.Time) bool {
	return lifecycle.Lost(o.since, now)
}
