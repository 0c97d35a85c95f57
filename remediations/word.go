package remediations

import (
	"fmt"
	"strings"
	"time"
)

// Word is what the Alertmanagers said when they were last asked.
type Word struct {
	// AskedAt is when asking began: what happened later, the word knows nothing of. Zero: never asked.
	AskedAt  time.Time
	Replicas []ReplicaWord
	// WatchdogMisses counts the polls in a row in which no replica showed the Watchdog; negative: never seen yet.
	WatchdogMisses int
}

// ReplicaWord is one replica's answer.
type ReplicaWord struct {
	URL string
	// Err is why the replica gave no answer; the rest means nothing then.
	Err error
	// Watchdog says that the replica shows the Watchdog as active.
	Watchdog bool
	// WatchdogAt is when it last received the Watchdog, by its own clock.
	WatchdogAt time.Time
	// BlindBy names an active alert that matches blindWhen; empty: none.
	BlindBy string
	// Alerts by fingerprint: all that are not expired and that a policy might want.
	Alerts map[string]AlertWord
}

// AlertWord is one alert as a replica has it.
type AlertWord struct {
	Labels   map[string]string
	StartsAt time.Time
	// EndsAt is when it counts as resolved unless it is sent again, UpdatedAt when it was last sent; zero: not known.
	EndsAt, UpdatedAt time.Time
	// Active is Alertmanager's state "active": neither silenced nor inhibited, and processed.
	Active                           bool
	SilencedBy, InhibitedBy, MutedBy []string
}

// silent says that whoever sends the alert has missed two of the times at which it would have sent it again: Prometheus
// gives an alert an end of four such times with each sending, so an alert outlives its dead source by minutes.
func (a AlertWord) silent(now time.Time) bool {
	life := a.EndsAt.Sub(a.UpdatedAt)
	return !a.EndsAt.IsZero() && !a.UpdatedAt.IsZero() && life > 0 && now.Sub(a.UpdatedAt) > life/2
}

// heardAt is when any replica that answered last received the Watchdog.
func (w *Word) heardAt() (at time.Time) {
	for _, r := range w.Replicas {
		if r.Err == nil && r.WatchdogAt.After(at) {
			at = r.WatchdogAt
		}
	}
	return at
}

// watchdogMissLimit is how many polls in a row may lack the Watchdog before Drydock calls itself blind.
const watchdogMissLimit = 3

// BlindCause says why the word as a whole cannot be trusted; empty: it can.
func (w *Word) BlindCause(c *Config) string {
	if w == nil || w.AskedAt.IsZero() {
		return "no Alertmanager has been asked yet"
	}
	answered := 0
	for _, r := range w.Replicas {
		if r.Err != nil {
			continue
		}
		answered++
		if r.BlindBy != "" {
			return fmt.Sprintf("the alert %s is active, so the metrics that alerts rest on are missing", r.BlindBy)
		}
	}
	if c.Watchdog && w.WatchdogMisses < 0 && answered > 0 {
		return "no Alertmanager has shown the Watchdog alert yet"
	}
	if c.Watchdog && w.WatchdogMisses >= watchdogMissLimit {
		return fmt.Sprintf("no Alertmanager has shown the Watchdog alert for %d polls", w.WatchdogMisses)
	}
	return ""
}

// verdict is what a word says of one alert.
type verdict struct {
	// reason is empty where the alert is confirmed: active, and on a replica whose word counts.
	reason  Reason
	message string
	// startsAt is when it began to fire, by the replica that confirms it.
	startsAt time.Time
	// fleetwide: it is the Alertmanagers that do not answer, for whichever alert.
	fleetwide bool
	// gone says that somebody whose word counts answered, and nobody who answered has the alert, muted or not.
	gone bool
}

// about says what the replicas together say of the alert: invariant 5. One replica that says active is enough, if it
// also shows the Watchdog; one that says silenced or inhibited holds; one that does not answer is passed over.
func (w *Word) about(fingerprint string, c *Config) verdict {
	var silencedBy, inhibitedBy, dead []string
	answered, alive, activeAnywhere, known := 0, false, false, false
	var silent time.Time
	confirmed := verdict{reason: AlertUnconfirmed}
	for _, r := range w.Replicas {
		if r.Err != nil {
			dead = append(dead, fmt.Sprintf("%s: %v", r.URL, r.Err))
			continue
		}
		answered++
		alive = alive || r.Watchdog || !c.Watchdog
		a, ok := r.Alerts[fingerprint]
		if !ok {
			continue
		}
		known = true
		silencedBy = append(append(silencedBy, a.SilencedBy...), a.MutedBy...)
		inhibitedBy = append(inhibitedBy, a.InhibitedBy...)
		if a.Active {
			activeAnywhere = true
			switch {
			case a.silent(w.AskedAt):
				silent = a.UpdatedAt
			case r.Watchdog || !c.Watchdog:
				confirmed = verdict{startsAt: a.StartsAt}
			}
		}
	}
	switch {
	case answered == 0:
		return verdict{reason: AlertUnconfirmed, fleetwide: true, message: fmt.Sprintf("none of %d Alertmanagers answered (%s); nothing is done until one does", len(w.Replicas), clip(strings.Join(dead, "; "), 200))}
	case c.RequireAll && len(dead) > 0:
		return verdict{reason: AlertUnconfirmed, fleetwide: true, message: fmt.Sprintf("alertmanager.require is all, and %s", clip(strings.Join(dead, "; "), 200))}
	case activeAnywhere && confirmed.reason != "" && !silent.IsZero():
		return verdict{reason: Blind, message: fmt.Sprintf("the alert was last sent to Alertmanager at %s and should have been sent again since, so its source seems to be gone", silent.UTC().Format(time.RFC3339))}
	case activeAnywhere && confirmed.reason != "":
		return verdict{reason: Blind, message: "the Alertmanager that has the alert does not show the Watchdog, so its word does not count"}
	case len(silencedBy) > 0:
		return verdict{reason: Silenced, message: fmt.Sprintf("silenced by %s; it goes on when the silence ends", clip(strings.Join(silencedBy, ", "), 120))}
	case len(inhibitedBy) > 0:
		return verdict{reason: Inhibited, message: fmt.Sprintf("inhibited by the alert %s", clip(strings.Join(inhibitedBy, ", "), 120))}
	case activeAnywhere:
		return confirmed
	case known:
		return verdict{reason: AlertUnconfirmed, message: "Alertmanager has the alert but has not processed it yet"}
	default:
		return verdict{reason: AlertUnconfirmed, gone: alive, message: fmt.Sprintf("none of the %d Alertmanagers that answered has this alert firing", answered)}
	}
}
