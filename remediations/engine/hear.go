package engine

import (
	"context"
	"fmt"
	"time"

	"drydock.dev/drydock/remediations/alerts"
)

type looked struct {
	askedAt  time.Time
	replicas []alerts.Replica
}

// look asks Alertmanager without waiting for the answer. One look at a time; one that is asked for while another runs
// follows it, since the running one may have asked before whatever the caller wants to know.
func (e *Engine) look(ctx context.Context) {
	if e.looking {
		e.lookAgain = true
		return
	}
	e.looking, e.lookAgain = true, false
	askedAt := e.Clock.Now()
	e.Beside(func() {
		e.looked <- looked{askedAt: askedAt, replicas: e.Alerts.Look(ctx)}
	})
}

// heard takes in what the Alertmanagers said.
func (e *Engine) heard(ctx context.Context, l looked) {
	e.looking = false
	w := &alerts.Snapshot{AskedAt: l.askedAt, Replicas: l.replicas}
	before := e.replicaDown
	e.replicaDown = make(map[string]bool, len(l.replicas)) // replicas come and go with their addresses
	for _, r := range l.replicas {
		if r.Err == nil && r.Watchdog {
			e.sawWatchdog = l.askedAt
		}
		down := r.Err != nil
		e.replicaDown[r.URL] = down
		if down != before[r.URL] {
			if down {
				e.Log.Error(r.Err, "an Alertmanager does not answer", "url", r.URL)
				e.Events.Event("", Event{Warning: true, Reason: "AlertmanagerDown", Action: r.URL, Note: fmt.Sprintf("%s does not answer: %v. It is passed over while another answers.", r.URL, r.Err)})
			} else {
				e.Log.Info("an Alertmanager answers again", "url", r.URL)
			}
		}
	}
	w.WatchdogMisses = -1
	if !e.sawWatchdog.IsZero() {
		w.WatchdogMisses = int(l.askedAt.Sub(e.sawWatchdog) / e.PollInterval)
	}
	e.word = w
	e.adopt(ctx)
	if e.lookAgain {
		e.look(ctx)
	}
}
