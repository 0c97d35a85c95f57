package remediations

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// SelfTestState is how far the alert that always fires gets on its way to Drydock.
type SelfTestState string

const (
	// SelfTestUnknown: nothing can be said, or not yet.
	SelfTestUnknown SelfTestState = "unknown"
	// SelfTestMissing: no Alertmanager that answered has the alert.
	SelfTestMissing SelfTestState = "missing"
	// SelfTestUnrouted: Alertmanager has it, and sends it to others only.
	SelfTestUnrouted SelfTestState = "unrouted"
	// SelfTestNotArrived: Alertmanager sends it here, and it does not arrive.
	SelfTestNotArrived SelfTestState = "not_arrived"
	// SelfTestOK: it is sent here, and arrives.
	SelfTestOK SelfTestState = "ok"
)

// SelfTestStates are all of them.
var SelfTestStates = []SelfTestState{SelfTestUnknown, SelfTestMissing, SelfTestUnrouted, SelfTestNotArrived, SelfTestOK}

// Bad says that Drydock is not connected, and a person must look.
func (s SelfTestState) Bad() bool {
	return s == SelfTestMissing || s == SelfTestUnrouted || s == SelfTestNotArrived
}

// SelfTest is what is said of the connection. The zero value: it is not asked for, or was never judged.
type SelfTest struct {
	State SelfTestState `json:"state,omitempty"`
	// Message has no word in it that moves with time, so that the same state is written once.
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// SelfTestAlert is one alert that the self-test's matchers select, as one replica has it.
type SelfTestAlert struct {
	// Receivers are those that the replica's routes lead it to.
	Receivers []string
	// Quiet is what keeps its notifications back: a silence, another alert, a time interval; empty: nothing.
	Quiet string
}

// Posts is what the receiver of this replica knows beside the ledger; zero times: never.
type Posts struct {
	// Arrived is when the self-test's alert last arrived, durable or not.
	Arrived time.Time
	// Refused is when a post was last refused for its token.
	Refused time.Time
}

// Times of the self-test. Polls are 15 s apart by default and come a moment early or late, so what is to be said at one of
// them is due some seconds before it: at 30 s, 45 s and 90 s.
const (
	// selfTestFirst is how long the alert must be missing or unrouted before that is said, where this process has never
	// seen it routed here; selfTestAgain, where it has: an Alertmanager that was started again has no alerts until
	// Prometheus sends them again, and takes back nothing before that.
	selfTestFirst = 25 * time.Second
	selfTestAgain = 40 * time.Second
	// selfTestHeld is how long a word counts that later ones do not confirm.
	selfTestHeld = 45 * time.Second
	// selfTestArrives is how long the first arrival may take: Alertmanager's group_wait is 30 s.
	selfTestArrives = 85 * time.Second
	// selfTestYoung is how old the last arrival may be: with a repeat_interval and a group_interval of 5 m Alertmanager
	// posts at every second flush only, each 10 m.
	selfTestYoung = 11 * time.Minute
	// selfTestAhead is how far another replica's clock may be ahead. What is further in the future is not believed, or it
	// would count as young for as long.
	selfTestAhead = 2 * time.Minute
)

// IsSelfTest says that an alert with these labels is this cluster's self-test: it is about no node.
func (c *Config) IsSelfTest(alert map[string]string) bool {
	if len(c.SelfTest) == 0 || (c.ClusterLabel != "" && alert[c.ClusterLabel] != c.ClusterValue) {
		return false
	}
	return matches(c.SelfTest, alert)
}

// SelfTestMemory is what the leader remembers from one word of the Alertmanagers to the next. It may be lost.
type SelfTestMemory struct {
	// Last is what the last word by itself showed, At when it was asked for.
	Last selfTestSight
	At   time.Time
	// Answered and Routed are when any replica last answered, and last had the alert routed here.
	Answered, Routed time.Time
	// Astray is since when it is missing or unrouted; Free since when it is routed here with nothing in its way, but for
	// moments that were too short to be said.
	Astray, Free time.Time
	// Hindered: before it was free, this process saw something in its way.
	Hindered bool
}

// selfTestSight is what one word by itself shows.
type selfTestSight string

const (
	sightNobody   selfTestSight = "nobody answers"
	sightMissing  selfTestSight = "missing"
	sightUnrouted selfTestSight = "unrouted"
	sightQuiet    selfTestSight = "quiet"
	sightRouted   selfTestSight = "routed"
)

// Judge says how the connection is by what the Alertmanagers said and by what arrived, and what to remember. No guard
// asks for it: the self-test holds nothing, and blinds nobody.
func (m SelfTestMemory) Judge(c *Config, w *Word, arrival time.Time, posts Posts, was SelfTest) (SelfTestMemory, SelfTest) {
	if len(c.SelfTest) == 0 {
		return m, SelfTest{}
	}
	at := w.AskedAt
	arrival = believed(at, arrival, posts.Arrived)
	sight, message := w.selfTest(c)
	agreed := sight == m.Last
	m = m.saw(sight, at)
	state := SelfTestUnknown
	switch sight {
	case sightNobody:
		if !m.Answered.IsZero() && at.Sub(m.Answered) < selfTestAgain {
			return m, m.hold(was, at, arrival)
		}
	case sightQuiet:
	case sightMissing, sightUnrouted:
		patience := selfTestFirst
		if !m.Routed.IsZero() {
			patience = selfTestAgain
		}
		if !agreed || at.Sub(m.Astray) < patience {
			return m, m.hold(was, at, arrival)
		}
		state = SelfTestState(sight)
		m.Free, m.Hindered = time.Time{}, true
	case sightRouted:
		state, message = m.arrives(c, at, arrival, posts.Refused, was)
	}
	return m, was.become(state, message, at)
}

// saw takes in what one word shows.
func (m SelfTestMemory) saw(sight selfTestSight, at time.Time) SelfTestMemory {
	before := m
	m.Last, m.At = sight, at
	if sight == sightNobody {
		return m // nothing was seen, so nothing has changed either
	}
	m.Answered = at
	switch sight {
	case sightMissing, sightUnrouted:
		switch {
		case !m.Astray.IsZero() && before.Last != sightNobody:
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

// arrives judges an alert that is routed here and that nothing keeps back.
func (m SelfTestMemory) arrives(c *Config, at, arrival, refused time.Time, was SelfTest) (SelfTestState, string) {
	if young(at, arrival) {
		return SelfTestOK, fmt.Sprintf("Alertmanager routes the alert %s to %q, and it arrives", c.SelfTest, c.Receiver)
	}
	limit := selfTestArrives
	if !arrival.IsZero() && m.Hindered {
		limit = selfTestYoung // Alertmanager may have posted it a moment before
	}
	if at.Sub(m.Free) < limit && was.State != SelfTestNotArrived {
		return SelfTestUnknown, fmt.Sprintf("Alertmanager routes the alert %s to %q; it is awaited", c.SelfTest, c.Receiver)
	}
	message := fmt.Sprintf("Alertmanager routes the alert %s to %q, but it has never arrived", c.SelfTest, c.Receiver)
	if !arrival.IsZero() {
		message = fmt.Sprintf("Alertmanager routes the alert %s to %q, but it has not arrived since %s", c.SelfTest, c.Receiver, arrival.UTC().Format(time.RFC3339))
	}
	if young(at, refused) {
		return SelfTestNotArrived, message + "; posts are refused here with 401: the token that Alertmanager sends is not the one of receiver.tokenFile"
	}
	return SelfTestNotArrived, message + ": look at the URL of the receiver's webhook, its token, the network between them (a NetworkPolicy?) and at Alertmanager's log"
}

// AwaitsArrival says that an arrival later than the one known would say something new.
func (t SelfTest) AwaitsArrival(known, now time.Time) bool {
	return t.State != "" && (t.State != SelfTestOK || now.Sub(known) > selfTestYoung-selfTestArrives)
}

// hold says what was said before, for as long as one word more or less means nothing.
func (m SelfTestMemory) hold(was SelfTest, at, arrival time.Time) SelfTest {
	if was.State == "" || (was.State == SelfTestOK && (m.Routed.IsZero() || at.Sub(m.Routed) > selfTestHeld || !young(at, arrival))) {
		return was.become(SelfTestUnknown, "Alertmanager does not say the same twice yet", at)
	}
	return was
}

// become keeps since when the state is as it is.
func (t SelfTest) become(state SelfTestState, message string, at time.Time) SelfTest {
	if t.State != state || t.Since.IsZero() {
		t.Since = at.UTC().Truncate(time.Second)
	}
	t.State, t.Message = state, clip(message, 800)
	return t
}

func young(at, then time.Time) bool { return !then.IsZero() && at.Sub(then) <= selfTestYoung }

// believed is the latest of the times that is not further in the future than clocks are apart.
func believed(at time.Time, times ...time.Time) (latest time.Time) {
	for _, t := range times {
		if t.After(latest) && t.Sub(at) <= selfTestAhead {
			latest = t
		}
	}
	return latest
}

// selfTest is what the word by itself shows, with a sentence.
func (w *Word) selfTest(c *Config) (selfTestSight, string) {
	answered, seen, quiet := 0, false, ""
	var others, akin []string
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
			case a.Quiet == "":
				return sightRouted, ""
			default:
				quiet = a.Quiet
			}
		}
		if len(r.SelfTest) > 0 {
			noReceiver, akin = noReceiver && r.NoReceiver, append(akin, r.Akin...)
		}
	}
	switch {
	case answered == 0:
		return sightNobody, "no Alertmanager answers"
	case !seen:
		return sightMissing, fmt.Sprintf("no Alertmanager has the alert %s, so Drydock's rules are not loaded, or their Prometheus sends its alerts elsewhere: "+
			"a PrometheusRule needs the labels that the Prometheus' ruleSelector asks for, such as kube-prometheus-stack's release", c.SelfTest)
	case quiet != "":
		return sightQuiet, fmt.Sprintf("the alert %s is %s, so nothing can be said", c.SelfTest, quiet)
	}
	return sightUnrouted, unrouted(c, others, akin, noReceiver)
}

func unrouted(c *Config, others, akin []string, noReceiver bool) string {
	message := fmt.Sprintf("Alertmanager has the alert %s, but routes it to %s and not to %q (alertmanager.receiver)", c.SelfTest, quoted(others), c.Receiver)
	switch {
	case noReceiver && len(akin) > 0:
		return message + fmt.Sprintf("; it has no receiver of this name, but %s: an AlertmanagerConfig's are called namespace/name/receiver", quoted(akin))
	case noReceiver:
		return message + "; it has no receiver of this name: write one, or its name into alertmanager.receiver (an AlertmanagerConfig's are called namespace/name/receiver)"
	}
	return message + "; look at its route, and with an AlertmanagerConfig at the matcher of its own namespace that the operator adds (alertmanagerConfigMatcherStrategy)"
}

// quoted names what others wrote, each once.
func quoted(all []string) string {
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	if len(all) == 0 {
		return "nobody"
	}
	for i, s := range all {
		all[i] = fmt.Sprintf("%q", s)
	}
	return clip(strings.Join(all, ", "), 200)
}
