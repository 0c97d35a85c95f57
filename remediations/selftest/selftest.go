// Package selftest checks the connection from Prometheus through Alertmanager to Drydock, with an
// alert that always fires. The result only informs people: it never holds a repair. The package is
// pure: its caller passes the times.
package selftest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// State is how far the self-test alert gets on its way to Drydock.
type State string

const (
	// Unknown means that there is no result, or none yet.
	Unknown State = "unknown"
	// Missing means that no Alertmanager that answered has the alert.
	Missing State = "missing"
	// Unrouted means that Alertmanager has the alert and does not route it to Drydock's receiver.
	Unrouted State = "unrouted"
	// NotArrived means that Alertmanager routes the alert to Drydock, but the alert does not arrive.
	NotArrived State = "not_arrived"
	// OK means that Alertmanager routes the alert to Drydock, and the alert arrives.
	OK State = "ok"
)

// States lists every State.
var States = []State{Unknown, Missing, Unrouted, NotArrived, OK}

// Bad reports whether Drydock is not connected, so that a person must check why.
func (s State) Bad() bool { return s == Missing || s == Unrouted || s == NotArrived }

// Result is the state of the connection. It is zero without a configured self-test or before the
// first poll.
type Result struct {
	State State `json:"state,omitempty"`
	// Without any text that changes with time, because every changed result is written.
	Message string `json:"message,omitempty"`
	// When the connection came into this state.
	Since time.Time `json:"since,omitzero"`
}

// Posts is what this replica's receiver knows. A zero time means never.
type Posts struct {
	// When the self-test alert last arrived at this replica. The time in the ledger may be older.
	Arrived time.Time
	// When the receiver last refused a post because of its token.
	Refused time.Time
}

// By default a poll comes every 15 s, a moment early or late. So firstPatience, laterPatience and
// arrivesWithin are 5 s shorter than two, three and six times that. The result then changes at the
// poll after 30 s, 45 s or 90 s.
const (
	// How long the alert must be missing or unrouted before the result changes, if this process has
	// never found it routed to Drydock.
	firstPatience = 25 * time.Second
	// The same if it has. It is longer, because an Alertmanager that was restarted has no alerts
	// until Prometheus sends them again.
	laterPatience = 40 * time.Second
	// How long the result OK lasts without a poll that confirms it.
	heldFor = 45 * time.Second
	// How long to wait for the alert to arrive after it became free to be sent (Memory.Free).
	// Alertmanager's group_wait alone is 30 s.
	arrivesWithin = 85 * time.Second
	// YoungFor is the greatest age of the last arrival for the result OK. It must be longer than
	// the time between two posts: if repeat_interval and group_interval are both 5 m, Alertmanager
	// posts only every 10 m.
	YoungFor = 11 * time.Minute
	// The clocks of replicas differ. A later arrival is ignored, because it would count as young
	// for too long.
	clocksApart = 2 * time.Minute
)

// Memory is what the leader remembers from one poll to the next. It is not stored, so a new leader
// starts without it.
type Memory struct {
	// The result of the last poll alone, and when that was sent.
	Last sight
	At   time.Time
	// When an Alertmanager last answered, and when an answer last showed that the alert is routed
	// to Drydock.
	Answered, Routed time.Time
	// When the alert became missing or unrouted. Zero means that it is neither now.
	Astray time.Time
	// When the alert became free to be sent to Drydock: routed there, and not silenced, inhibited
	// or muted. A short interruption that did not change the result does not count. Zero means that
	// it is not free.
	Free time.Time
	// Whether this process has ever found that the alert was not free to be sent.
	Hindered bool
}

// What one poll alone shows about the self-test alert.
type sight string

const (
	sightNoAnswer sight = "no answer"
	sightMissing  sight = "missing"
	sightUnrouted sight = "unrouted"
	sightQuiet    sight = "quiet"
	sightRouted   sight = "routed"
)

// Judge returns the memory for the next poll, and the new result. arrival is the last arrival
// according to the ledger, and was is the last result.
func (m Memory) Judge(c *remediations.Config, w *alerts.Snapshot, arrival time.Time, posts Posts, was Result) (Memory, Result) {
	if len(c.SelfTest) == 0 {
		return m, Result{}
	}
	at := w.AskedAt
	arrival = believed(at, arrival, posts.Arrived)
	shown, message := show(c, w)
	agreed := shown == m.Last
	m = m.saw(shown, at)
	state := Unknown
	switch shown {
	case sightNoAnswer:
		if !m.Answered.IsZero() && at.Sub(m.Answered) < laterPatience {
			return m, m.hold(was, at, arrival)
		}
	case sightQuiet:
	case sightMissing, sightUnrouted:
		patience := firstPatience
		if !m.Routed.IsZero() {
			patience = laterPatience
		}
		if !agreed || at.Sub(m.Astray) < patience {
			return m, m.hold(was, at, arrival)
		}
		state = State(shown)
		m.Free, m.Hindered = time.Time{}, true
	case sightRouted:
		state, message = m.arrives(c, at, arrival, posts.Refused, was)
	}
	return m, become(was, state, message, at)
}

// shown is what the poll showed, and at is when it was sent.
func (m Memory) saw(shown sight, at time.Time) Memory {
	before := m
	m.Last, m.At = shown, at
	if shown == sightNoAnswer {
		return m // no Alertmanager answered, so nothing has changed either
	}
	m.Answered = at
	switch shown {
	case sightMissing, sightUnrouted:
		switch {
		case !m.Astray.IsZero() && before.Last != sightNoAnswer:
		case before.Last == sightRouted || before.Last == sightQuiet:
			m.Astray = before.At // the change came after the previous poll
		default:
			m.Astray = at
		}
	case sightQuiet:
		m.Routed, m.Astray = at, time.Time{}
		m.Free, m.Hindered = time.Time{}, true
	default:
		m.Routed, m.Astray = at, time.Time{}
		if m.Free.IsZero() {
			m.Free = at
		}
	}
	return m
}

// Alertmanager should send the alert to Drydock now: OK if it arrived recently, NotArrived if it
// has not arrived for too long, and Unknown before that.
func (m Memory) arrives(c *remediations.Config, at, arrival, refused time.Time, was Result) (State, string) {
	if young(at, arrival) {
		return OK, fmt.Sprintf("Alertmanager routes the alert %s to %q, and it arrives", c.SelfTest, c.Receiver)
	}
	limit := arrivesWithin
	if !arrival.IsZero() && m.Hindered {
		limit = YoungFor // Alertmanager may have posted just before, and posts again only after this time
	}
	if at.Sub(m.Free) < limit && was.State != NotArrived {
		return Unknown, fmt.Sprintf("Alertmanager routes the alert %s to %q; Drydock waits for it to arrive", c.SelfTest, c.Receiver)
	}
	message := fmt.Sprintf("Alertmanager routes the alert %s to %q, but it has never arrived", c.SelfTest, c.Receiver)
	if !arrival.IsZero() {
		message = fmt.Sprintf("Alertmanager routes the alert %s to %q, but it has not arrived since %s", c.SelfTest, c.Receiver, arrival.UTC().Format(time.RFC3339))
	}
	message += ": check the URL and the token of the receiver's webhook, the network (a NetworkPolicy?) and Alertmanager's log"
	if young(at, refused) { // the sender of a refused post is unknown
		message += "; Drydock refused a post with 401: if Alertmanager sent it, its token is not the one in receiver.tokenFile"
	}
	return NotArrived, message
}

// AwaitsArrival reports whether a newer arrival than the known one could change the result.
func AwaitsArrival(t Result, known, now time.Time) bool {
	return t.State != "" && (t.State != OK || now.Sub(known) > YoungFor-arrivesWithin)
}

// One unusual poll alone must not change the result. It is Unknown if there is no previous result,
// or if a previous OK is too old.
func (m Memory) hold(was Result, at, arrival time.Time) Result {
	if was.State == "" || (was.State == OK && (m.Routed.IsZero() || at.Sub(m.Routed) > heldFor || !young(at, arrival))) {
		return become(was, Unknown, "waiting for a second, equal answer of Alertmanager", at)
	}
	return was
}

// Since stays if the state is the same.
func become(t Result, state State, message string, at time.Time) Result {
	if t.State != state || t.Since.IsZero() {
		t.Since = at.UTC().Truncate(time.Second)
	}
	t.State, t.Message = state, text.Line(message, 800)
	return t
}

func young(at, then time.Time) bool { return !then.IsZero() && at.Sub(then) <= YoungFor }

// The latest of the times, apart from those that are more than clocksApart in the future.
func believed(at time.Time, times ...time.Time) (latest time.Time) {
	for _, t := range times {
		if t.After(latest) && t.Sub(at) <= clocksApart {
			latest = t
		}
	}
	return latest
}

// show returns what this poll alone shows about the self-test alert, and a message about it.
func show(c *remediations.Config, w *alerts.Snapshot) (sight, string) {
	answered, seen, quiet := 0, false, ""
	var others, similar []string
	noReceiver := true
	for _, r := range w.Replicas {
		if r.Err != nil {
			continue
		}
		answered++
		for _, a := range r.SelfTest {
			seen = true
			switch {
			case !slices.Contains(a.Receivers, c.Receiver):
				others = append(others, a.Receivers...)
			case quietBy(a) == "":
				return sightRouted, ""
			default:
				quiet = quietBy(a)
			}
		}
		if len(r.SelfTest) > 0 {
			noReceiver, similar = noReceiver && r.NoReceiver, append(similar, r.Akin...)
		}
	}
	switch {
	case answered == 0:
		return sightNoAnswer, "no Alertmanager answers"
	case !seen:
		return sightMissing, fmt.Sprintf("no Alertmanager has the alert %s, so Drydock's rules are not loaded, or their Prometheus sends its alerts elsewhere: "+
			"a PrometheusRule needs the labels of the Prometheus' ruleSelector, for example kube-prometheus-stack's label release", c.SelfTest)
	case quiet != "":
		return sightQuiet, fmt.Sprintf("the alert %s is %s, so the connection cannot be judged", c.SelfTest, quiet)
	}
	return sightUnrouted, unrouted(c, others, similar, noReceiver)
}

// A silence, an inhibiting alert or a mute time interval, or "".
func quietBy(a alerts.Alert) string {
	switch {
	case len(a.SilencedBy) > 0:
		return "silenced by " + strings.Join(a.SilencedBy, ", ")
	case len(a.InhibitedBy) > 0:
		return "inhibited by the alert " + strings.Join(a.InhibitedBy, ", ")
	case len(a.MutedBy) > 0:
		return "muted by the time interval " + strings.Join(a.MutedBy, ", ")
	}
	return ""
}

func unrouted(c *remediations.Config, others, similar []string, noReceiver bool) string {
	message := fmt.Sprintf("Alertmanager has the alert %s, but routes it to %s and not to %q (alertmanager.receiver)", c.SelfTest, cmp.Or(text.Quoted(others, 200), "no receiver"), c.Receiver)
	switch {
	case noReceiver && len(similar) > 0:
		return message + fmt.Sprintf("; it has no receiver with this name, but %s: a receiver of an AlertmanagerConfig is called namespace/name/receiver", text.Quoted(similar, 200))
	case noReceiver:
		return message + "; it has no receiver with this name: add one, or correct alertmanager.receiver (a receiver of an AlertmanagerConfig is called namespace/name/receiver)"
	}
	return message + "; check the alert's route (for an AlertmanagerConfig, the operator adds a matcher for its own namespace: see alertmanagerConfigMatcherStrategy)"
}
