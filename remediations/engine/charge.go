package engine

import (
	"context"
	"errors"

	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// ErrNotInCharge means that nothing was written, because another installation may be in charge of
// the cluster.
var ErrNotInCharge = errors.New("this Drydock is not in charge of the cluster")

func (e *Engine) lacksCharge() string {
	if e.Charge == nil {
		return ""
	}
	return e.Charge()
}

// standsAside sends its Event only if this lasts, because a new leader needs a moment to take the
// cluster's Lease.
func (e *Engine) standsAside(ctx context.Context) bool {
	now, why := e.Clock.Now(), e.lacksCharge()
	e.metrics.blind.WithLabelValues(blindCharge).Set(gauge(why != ""))
	if why == "" {
		if e.aside.told {
			e.Events.Event("", Event{Reason: "InCharge", Action: "Held", Note: "this Drydock is in charge of the cluster again"})
		}
		e.aside.over()
		e.asideSaid = ""
		return false
	}
	if e.aside.since.IsZero() {
		e.aside.since = now
		e.ledger = nil // the data may be old when this installation is in charge again
	}
	if lifecycle.Lost(e.aside.since, now) {
		if !e.aside.told {
			e.aside.told = true
			e.Events.Event("", Event{Warning: true, Reason: "NotInCharge", Action: "Held", Note: "this Drydock changes nothing: " + why})
		}
		e.sayAside(ctx, why)
	}
	for _, m := range e.memory {
		m.stopWork()
	}
	return true
}

// sayAside writes the reason into this installation's own ledger, where people can read it. It does
// not create a missing ledger.
func (e *Engine) sayAside(ctx context.Context, why string) {
	if e.asideSaid == why {
		return
	}
	data, version, err := e.Store.Load(ctx)
	if err != nil {
		return
	}
	l, err := ledger.Decode(data)
	if err != nil {
		return
	}
	if l.Status.Aside != why {
		l.Status.Aside = why
		if _, err := e.Store.Save(ctx, l.Encode(), version); err != nil {
			e.Log.Error(err, "the ledger could not be saved", "why", why)
			return
		}
	}
	e.asideSaid = why
}
