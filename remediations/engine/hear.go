package engine

import (
	"context"
	"fmt"
	"time"

	"drydock.dev/drydock/remediations/alerts"
)

const (
	// restPerAlert is the wait before the next query for each alert in the last answer. It is about
	// five times the CPU time that one alert costs Alertmanager and Drydock together.
	restPerAlert    = 200 * time.Microsecond
	leastLookRest   = 50 * time.Millisecond
	longestLookRest = time.Second
)

type looked struct {
	askedAt  time.Time
	replicas []alerts.Replica
}

// look queries Alertmanager and does not wait for the answer. A request during a query causes
// another query after it, because the running query may miss the change that the caller needs.
//
// In a storm each alert requests a query. Answers with thousands of alerts, one after the other,
// would take the CPU from the writes. So a query that comes too early waits until lookFrom.
func (e *Engine) look(ctx context.Context) {
	if e.looking {
		e.lookAgain = true
		return
	}
	askedAt := e.Clock.Now()
	if askedAt.Before(e.lookFrom) {
		e.lookDue = true
		return
	}
	e.looking, e.lookAgain, e.lookDue = true, false, false
	last := e.word
	e.Beside(func() {
		e.looked <- looked{askedAt: askedAt, replicas: LookWithin(ctx, e.Clock, e.Alerts, e.core.lookLongest, last)}
	})
}

func (e *Engine) received(ctx context.Context, l looked) {
	e.looking = false
	w := &alerts.Snapshot{AskedAt: l.askedAt, Replicas: l.replicas}
	before := e.replicaDown
	e.replicaDown = make(map[string]bool, len(l.replicas)) // a new map, because replicas come and go with their addresses
	e.noteAnswers(l)
	for _, r := range l.replicas {
		if r.Err == nil && r.Watchdog {
			e.sawWatchdog = l.askedAt
		}
		down := r.Err != nil
		if !down {
			e.metrics.answered(sourceAlertmanager, l.askedAt)
		}
		e.replicaDown[r.URL] = down
		if down != before[r.URL] {
			if down {
				e.Log.Error(r.Err, "an Alertmanager does not answer", "url", r.URL)
				e.Events.Event("", Event{Warning: true, Reason: "AlertmanagerDown", Action: r.URL, Note: fmt.Sprintf("Alertmanager %s does not answer: %v. Drydock uses the other Alertmanagers while one of them answers.", r.URL, r.Err)})
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
	e.lookFrom = e.Clock.Now().Add(lookRest(l.replicas))
	if e.lookAgain {
		e.look(ctx)
	}
}

func (e *Engine) noteAnswers(l looked) {
	var err error
	for _, r := range l.replicas {
		if r.Err == nil {
			e.alertsOut.over()
			return
		}
		err = r.Err
	}
	e.alertsOut.failed(l.askedAt, err, outageLongest)
}

func lookRest(replicas []alerts.Replica) time.Duration {
	told := 0
	for _, r := range replicas {
		told += len(r.Alerts)
	}
	rest := min(time.Duration(told)*restPerAlert, longestLookRest)
	if rest < leastLookRest {
		return 0
	}
	return rest
}
