package alertmanager

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/prometheus/common/model"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// Alertmanager has processed the alert, and neither a silence nor an inhibition covers it. A newer
// Alertmanager may have states that this package does not know.
const stateActive = "active"

// answer collects the alerts of interest while a replica's list of alerts is read.
type answer struct {
	interests interests

	watchdog   bool
	watchdogAt time.Time
	// The active alerts that match blindWhen: Prometheus does not see the nodes. The name
	// alerts.SourceDown is never here, because sourceDown is set instead.
	blindBy    map[string]bool
	sourceDown bool
	sourceSeen alerts.Alert
	alerts     map[string]alerts.Alert
	selfTests  map[string]alerts.Alert
	// The memory of the alerts that this answer stores.
	kept kept
	// The alerts of no interest, by fingerprint, with only their names and nodes: one of them may
	// inhibit an alert of interest.
	others map[string]reading
	// The decoded alerts of the replica's previous answer, and of this one. Alerts that also show
	// something about Alertmanager or Prometheus, like the Watchdog, are in neither, because they
	// must be evaluated in each answer.
	known, readings readings
	routes          routes
	text            json.RawMessage
}

func newAnswer(in interests, known readings) *answer {
	return &answer{known: known, readings: readings{}, interests: in, blindBy: map[string]bool{}, alerts: map[string]alerts.Alert{}, selfTests: map[string]alerts.Alert{}, others: map[string]reading{}, routes: routes{}}
}

// The model's own decoder reads each alert twice, with its annotations. With thousands of alerts
// every 15 s, that would be most of Drydock's work. L is the type of the labels.
type gettable[L map[string]string | json.RawMessage] struct {
	Labels    L                           `json:"labels"`
	StartsAt  *instant                    `json:"startsAt"`
	EndsAt    *instant                    `json:"endsAt"`
	UpdatedAt *instant                    `json:"updatedAt"`
	Receivers []*models.ReceiverReference `json:"receivers"`
	Status    *struct {
		State       string   `json:"state"`
		SilencedBy  []string `json:"silencedBy"`
		InhibitedBy []string `json:"inhibitedBy"`
		MutedBy     []string `json:"mutedBy"`
	} `json:"status"`
}

// instant is a strfmt.DateTime that is decoded much faster in Alertmanager's own form. Each alert
// has three such times, and strfmt would use a fifth of a poll's cost for them.
type instant time.Time

// UnmarshalJSON accepts the same texts as strfmt.DateTime.
func (i *instant) UnmarshalJSON(data []byte) error {
	if (*time.Time)(i).UnmarshalJSON(data) == nil {
		return nil
	}
	var t strfmt.DateTime
	err := t.UnmarshalJSON(data)
	*i = instant(t)
	return err
}

// An alert whose text was in the previous answer is not decoded again.
func (a *answer) read(d *json.Decoder) error {
	if err := d.Decode(&a.text); err != nil {
		return err
	}
	id := writtenAs(a.text)
	if r, ok := a.known[id]; ok {
		return a.take(r, id)
	}
	var alert *gettable[map[string]string]
	if err := json.Unmarshal(a.text, &alert); err != nil {
		return err
	}
	if err := genuine(alert); err != nil {
		return err
	}
	return a.add(alert, id)
}

// take stores a decoded alert that shows nothing about Alertmanager or Prometheus itself:
// completely if it is of interest, and otherwise its name and node, for at most maxAlerts alerts.
func (a *answer) take(r reading, id written) error {
	if r.alert != nil {
		if err := a.keep(r); err != nil {
			return err
		}
	} else if !a.pass(r) {
		return nil
	}
	a.readings[id] = r
	return nil
}

// pass stores the name and the node of an alert of no interest. It returns false if maxAlerts such
// alerts are already stored.
func (a *answer) pass(r reading) bool {
	if len(a.others) >= maxAlerts {
		return false
	}
	a.others[r.fingerprint] = r
	return true
}

func (a *answer) keep(r reading) error {
	if _, twice := a.alerts[r.fingerprint]; twice {
		return fmt.Errorf("it has the alert %s twice, so it is not Alertmanager's", r.name)
	}
	if len(a.alerts) == maxAlerts {
		return fmt.Errorf("it has more than %d alerts of interest", maxAlerts)
	}
	a.alerts[r.fingerprint] = *r.alert
	return a.kept.alert(r.alert)
}

var errNotGenuine = errors.New("it has an alert without labels, state or startsAt, so it is not Alertmanager's")

// Alertmanager never writes an alert without labels, state or start, so nothing else in the answer
// can be trusted either.
func genuine[L map[string]string | json.RawMessage](m *gettable[L]) error {
	if m == nil || len(m.Labels) == 0 || m.StartsAt == nil || m.Status == nil || m.Status.State == "" {
		return errNotGenuine
	}
	return nil
}

// add first finds out whether the alert is the Watchdog, shows whether Prometheus sees the nodes,
// or is from the self-test.
func (a *answer) add(m *gettable[map[string]string], id written) error {
	set := labelSet(m.Labels)
	watchdog := a.interests.watchdog != nil && a.interests.watchdog.Matches(set)
	if watchdog {
		a.watchdog = true
		if at := timeOf(m.UpdatedAt); at.After(a.watchdogAt) {
			a.watchdogAt = at
		}
	}
	blinds := m.Status.State == stateActive && a.interests.blinds(set)
	if blinds {
		a.blind(nameOf(set))
	}
	seen := a.interests.seen != nil && a.interests.seen.Matches(set)
	if at := timeOf(m.UpdatedAt); seen && at.After(a.sourceSeen.UpdatedAt) {
		a.sourceSeen = alerts.Alert{UpdatedAt: at, EndsAt: timeOf(m.EndsAt)}
	}
	key := set.Fingerprint().String()
	selfTest := a.interests.isSelfTest(m.Labels)
	if selfTest && len(a.selfTests) < maxSelfTests {
		one := a.whole(m)
		a.selfTests[key] = *one
		if err := a.kept.alert(one); err != nil {
			return err
		}
	}
	r := reading{fingerprint: key, name: nameOf(set), nodes: a.interests.nodesOf(m.Labels)}
	if !selfTest && a.interests.keeps(m.Labels) {
		r.alert = a.whole(m)
	}
	switch {
	case !selfTest && !watchdog && !blinds && !seen:
		return a.take(r, id)
	case r.alert != nil:
		return a.keep(r)
	}
	a.pass(r)
	return nil
}

func (a *answer) whole(m *gettable[map[string]string]) *alerts.Alert {
	return &alerts.Alert{
		Labels:      m.Labels,
		StartsAt:    timeOf(m.StartsAt),
		EndsAt:      timeOf(m.EndsAt),
		UpdatedAt:   timeOf(m.UpdatedAt),
		Active:      m.Status.State == stateActive,
		SilencedBy:  m.Status.SilencedBy,
		InhibitedBy: m.Status.InhibitedBy,
		MutedBy:     m.Status.MutedBy,
		Receivers:   a.routes.of(m.Receivers),
	}
}

func (a *answer) blind(name string) {
	if name == alerts.SourceDown {
		a.sourceDown = true
	} else if len(a.blindBy) < maxBlindBy {
		a.blindBy[name] = true
	}
}

func (a *answer) replica() alerts.Replica {
	out := alerts.Replica{
		Watchdog: a.watchdog, WatchdogAt: a.watchdogAt, BlindBy: strings.Join(slices.Sorted(maps.Keys(a.blindBy)), ", "), SourceDown: a.sourceDown,
		Alerts: a.alerts, Inhibitors: a.inhibitors(), SelfTest: a.selfTest(),
	}
	if seen := a.sourceSeen; !seen.UpdatedAt.IsZero() {
		out.SourceSeen = &seen
	}
	return out
}

// by has the names of the time intervals that mute each alert. An alert that is only in the answer
// about groups is ignored: it began between the two requests, and the next poll finds it.
func (a *answer) mute(by map[string][]string) {
	for _, all := range []map[string]alerts.Alert{a.alerts, a.selfTests} {
		for key, one := range all {
			one.MutedBy = by[key]
			all[key] = one
		}
	}
}

func (a *answer) selfTest() []alerts.Alert {
	var out []alerts.Alert
	for _, key := range slices.Sorted(maps.Keys(a.selfTests)) {
		out = append(out, a.selfTests[key])
	}
	return out
}

func (a *answer) silenceIDs() []string {
	ids := map[string]bool{}
	for _, alert := range a.alerts {
		for _, id := range alert.SilencedBy {
			ids[id] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// The labels of the alerts that inhibit alerts of interest, by fingerprint, if the replica's answer
// has them.
func (a *answer) inhibitors() map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, alert := range a.alerts {
		for _, key := range alert.InhibitedBy {
			if by, ok := a.alerts[key]; ok {
				out[key] = a.interests.inhibitor(by.Labels[model.AlertNameLabel], a.interests.nodesOf(by.Labels))
			} else if by, ok := a.others[key]; ok {
				out[key] = a.interests.inhibitor(by.name, by.nodes)
			}
		}
	}
	return out
}

// nameOf is for messages. It returns the fingerprint if the name is missing or too long.
func nameOf(set model.LabelSet) string {
	const longest = 128
	name := string(set[model.AlertNameLabel])
	if name == "" || len(name) > longest {
		return set.Fingerprint().String()
	}
	return name
}

// If RFC 3339 cannot express the year, timeOf returns the nearest time that it can. The alert must
// not be left out: it would count as resolved, and its silence would no longer hold a repair.
func timeOf[T instant | strfmt.DateTime](t *T) time.Time {
	if t == nil {
		return time.Time{}
	}
	return remediations.InYears(time.Time(*t))
}
