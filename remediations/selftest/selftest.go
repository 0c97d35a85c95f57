// Package selftest judges the connection between Prometheus, Alertmanager and Drydock by an alert
// that always fires. No decision about a node depends on the result: the self-test holds no repair,
// and never makes Drydock blind. The package is pure: its caller passes the times.
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

// State is how far the alert that always fires gets on its way to Drydock.
type State string

const (
	// Unknown: no result, or not yet.
	Unknown State = "unknown"
	// Missing: no Alertmanager that answered has the alert.
	Missing State = "missing"
	// Unrouted: Alertmanager has it, and sends it to other receivers only.
	Unrouted State = "unrouted"
	// NotArrived: Alertmanager sends it here, and it does not arrive.
	NotArrived State = "not_arrived"
	// OK: Alertmanager sends it here, and it arrives.
	OK State = "ok"
)

// States are all of them.
var States = []State{Unknown, Missing, Unrouted, NotArrived, OK}

// Bad reports that Drydock is not connected, and a person must check why.
func (s State) Bad() bool { return s == Missing || s == Unrouted || s == NotArrived }

// Result is the state of the connection. The zero value: no self-test is configured, or it was
// never judged.
type Result struct {
	State State `json:"state,omitempty"`
	// Message contains no text that changes with time, so that the same state is written once.
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// Posts is what the receiver of this replica knows besides the ledger; zero times: never.
type Posts struct {
	// Arrived is when the self-test's alert last arrived, durable or not.
	Arrived time.Time
	// Refused is when a post was last refused for its token.
	Refused time.Time
}

// Times of the self-test. Polls are 15 s apart by default and come a moment early or late. So a
// change that a poll at 30 s, 45 s or 90 s must report is due some seconds before that poll.
const (
	// firstPatience is how long the alert must be missing or unrouted before the result says so, if
	// this process has never seen it routed here. laterPatience is the same if this process has
	// seen it: an Alertmanager that was restarted has no alerts until Prometheus sends them again.
	firstPatience = 25 * time.Second
	laterPatience = 40 * time.Second
	// heldFor is how long a result counts that later polls do not confirm.
	heldFor = 45 * time.Second
	// arrivesWithin is how long the first arrival may take: Alertmanager's group_wait is 30 s.
	arrivesWithin = 85 * time.Second
	// YoungFor is how old the last arrival may be. With a repeat_interval and a group_interval of 5
	// m, Alertmanager posts at every second flush only, each 10 m.
	YoungFor = 11 * time.Minute
	// clocksApart is how far another replica's clock may be ahead. A time further in the future is
	// ignored, because it would count as young for as long.
	clocksApart = 2 * time.Minute
)

// Memory is what the leader remembers from one poll of the Alertmanagers to the next. It may be
// lost.
type Memory struct {
	// Last is what the last poll by itself showed, At when it was sent.
	Last sight
	At   time.Time
	// Answered and Routed are when any replica last answered, and last had the alert routed here.
	Answered, Routed time.Time
	// Astray is since when the alert is missing or unrouted. Free is since when it is routed here
	// with nothing in its way, apart from interruptions that were too short to report.
	Astray, Free time.Time
	// Hindered: before it was free, this process saw something in its way.
	Hindered bool
}

// sight is what one poll by itself shows.
type sight string

const (
	sightNoAnswer sight = "no answer"
	sightMissing  sight = "missing"
	sightUnrouted sight = "unrouted"
	sightQuiet    sight = "quiet"
	sightRouted   sight = "routed"
)

// Judge returns the state of the connection, from the Alertmanagers' answers and the arrivals, and
// what to remember. No guard uses it: the self-test holds no repair, and never makes Drydock blind.
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

// saw adds what one poll shows to the memory.
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
			m.Astray = before.At // somewhere in between
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

// arrives judges an alert that is routed here and not held back.
func (m Memory) arrives(c *remediations.Config, at, arrival, refused time.Time, was Result) (State, string) {
	if young(at, arrival) {
		return OK, fmt.Sprintf("Alertmanager routes the alert %s to %q, and it arrives", c.SelfTest, c.Receiver)
	}
	limit := arrivesWithin
	if !arrival.IsZero() && m.Hindered {
		limit = YoungFor // Alertmanager may have posted it a moment before
	}
	if at.Sub(m.Free) < limit && was.State != NotArrived {
		return Unknown, fmt.Sprintf("Alertmanager routes the alert %s to %q; it is awaited", c.SelfTest, c.Receiver)
	}
	message := fmt.Sprintf("Alertmanager routes the alert %s to %q, but it has never arrived", c.SelfTest, c.Receiver)
	if !arrival.IsZero() {
		message = fmt.Sprintf("Alertmanager routes the alert %s to %q, but it has not arrived since %s", c.SelfTest, c.Receiver, arrival.UTC().Format(time.RFC3339))
	}
	message += ": look at the URL of the receiver's webhook, its token, the network between them (a NetworkPolicy?) and at Alertmanager's log"
	if young(at, refused) { // the sender is unknown: the post had no valid token
		message += "; a post was refused here with 401: if Alertmanager sent it, the token that Alertmanager sends is not the one of receiver.tokenFile"
	}
	return NotArrived, message
}

// AwaitsArrival reports that an arrival later than the known one would change the result.
func AwaitsArrival(t Result, known, now time.Time) bool {
	return t.State != "" && (t.State != OK || now.Sub(known) > YoungFor-arrivesWithin)
}

// hold keeps the previous result, for as long as one more or one missing poll means nothing.
func (m Memory) hold(was Result, at, arrival time.Time) Result {
	if was.State == "" || (was.State == OK && (m.Routed.IsZero() || at.Sub(m.Routed) > heldFor || !young(at, arrival))) {
		return become(was, Unknown, "waiting for a second, equal answer of Alertmanager", at)
	}
	return was
}

// become sets the state, and keeps Since if the state is unchanged.
func become(t Result, state State, message string, at time.Time) Result {
	if t.State != state || t.Since.IsZero() {
		t.Since = at.UTC().Truncate(time.Second)
	}
	t.State, t.Message = state, text.Line(message, 800)
	return t
}

func young(at, then time.Time) bool { return !then.IsZero() && at.Sub(then) <= YoungFor }

// believed returns the latest of the times, without those that are further in the future than
// clocks may be apart.
func believed(at time.Time, times ...time.Time) (latest time.Time) {
	for _, t := range times {
		if t.After(latest) && t.Sub(at) <= clocksApart {
			latest = t
		}
	}
	return latest
}

// show returns what the poll by itself shows, with a sentence.
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
			"a PrometheusRule needs the labels that the Prometheus' ruleSelector asks for, for example kube-prometheus-stack's release", c.SelfTest)
	case quiet != "":
		return sightQuiet, fmt.Sprintf("the alert %s is %s, so the connection cannot be judged", c.SelfTest, quiet)
	}
	return sightUnrouted, unrouted(c, others, similar, noReceiver)
}

// quietBy returns what holds back the alert's notifications: a silence, another alert, a time
// interval; empty: nothing.
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
		return message + fmt.Sprintf("; it has no receiver of this name, but %s: an AlertmanagerConfig's are called namespace/name/receiver", text.Quoted(similar, 200))
	case noReceiver:
		return message + "; it has no receiver of this name: write one, or its name into alertmanager.receiver (an AlertmanagerConfig's are called namespace/name/receiver)"
	}
	return message + "; look at its route, and with an AlertmanagerConfig at the matcher of its own namespace that the operator adds (alertmanagerConfigMatcherStrategy)"
}
