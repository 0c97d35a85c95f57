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

// stateActive is Alertmanager's state of an alert that Alertmanager has processed and that neither
// a silence nor an inhibition covers. A newer Alertmanager may have states that this package does
// not know.
const stateActive = "active"

// answer collects the alerts of interest (those that Options.Keep selects) while Drydock reads a
// replica's list of alerts.
type answer struct {
	interests interests

	watchdog   bool
	watchdogAt time.Time
	// blindBy has the names of the active alerts that match the configured matchers blindWhen. Such
	// an alert shows that Prometheus does not see the nodes. The name alerts.SourceDown is never in
	// blindBy, because sourceDown is set instead.
	blindBy    map[string]bool
	sourceDown bool
	sourceSeen alerts.Alert
	alerts     map[string]alerts.Alert
	// selfTests are the alerts of the self-test, by fingerprint.
	selfTests map[string]alerts.Alert
	// kept counts the memory of the alerts that this answer stores.
	kept kept
	// others are the alerts of no interest, by fingerprint. Only their names and nodes are stored.
	// They are needed because one of them may inhibit an alert of interest.
	others map[string]reading
	// known are the decoded alerts of the replica's previous answer. readings are the decoded
	// alerts of this answer. Alerts that also show something about Alertmanager or Prometheus, like
	// the Watchdog, are in neither, because Drydock must evaluate them in each answer.
	known, readings readings
	routes          routes
	// text is the JSON of the alert that is being read.
	text json.RawMessage
}

func newAnswer(in interests, known readings) *answer {
	return &answer{known: known, readings: readings{}, interests: in, blindBy: map[string]bool{}, alerts: map[string]alerts.Alert{}, selfTests: map[string]alerts.Alert{}, others: map[string]reading{}, routes: routes{}}
}

// gettable has the fields of models.GettableAlert that Drydock reads. The model's own decoder reads
// each alert twice, with its annotations. With thousands of alerts every 15 s, that would be most
// of Drydock's work. L is the type of the labels.
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

// instant is a strfmt.DateTime that is decoded much faster if it has Alertmanager's own form. Each
// alert has three such times, and strfmt would use a fifth of a poll's cost for them.
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

// read reads one alert of the list. It does not decode an alert whose text was in the previous
// answer.
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

// take stores a decoded alert that shows nothing about Alertmanager or Prometheus itself. It stores
// an alert of interest completely, and only the name and the node of any other alert. Alerts of no
// interest beyond maxAlerts are not stored.
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

// pass stores the name and the node of an alert of no interest. It returns false, and stores
// nothing, if maxAlerts such alerts are already stored.
func (a *answer) pass(r reading) bool {
	if len(a.others) >= maxAlerts {
		return false
	}
	a.others[r.fingerprint] = r
	return true
}

// keep stores an alert of interest.
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

// genuine returns an error for an alert without labels, state or start. Alertmanager did not write
// such an alert, so nothing else in the answer can be trusted either.
func genuine[L map[string]string | json.RawMessage](m *gettable[L]) error {
	if m == nil || len(m.Labels) == 0 || m.StartsAt == nil || m.Status == nil || m.Status.State == "" {
		return errNotGenuine
	}
	return nil
}

// add evaluates one alert: is it the Watchdog, does it show that Prometheus does or does not see
// the nodes, is it from the self-test? Then add stores the alert, completely only if the alert is
// of interest.
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

// whole returns the alert with all the fields that Drydock stores of an alert of interest.
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

// blind notes that an active alert with this name matches blindWhen.
func (a *answer) blind(name string) {
	if name == alerts.SourceDown {
		a.sourceDown = true
	} else if len(a.blindBy) < maxBlindBy {
		a.blindBy[name] = true
	}
}

// replica returns the answer as an alerts.Replica.
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

// mute sets MutedBy of each stored alert from the replica's answer about groups. The key of by is
// the alert's fingerprint, and the value has the names of the time intervals that mute the alert.
// An alert that is only in the answer about groups is ignored: it began between the two requests,
// and the next poll finds it.
func (a *answer) mute(by map[string][]string) {
	for _, all := range []map[string]alerts.Alert{a.alerts, a.selfTests} {
		for key, one := range all {
			one.MutedBy = by[key]
			all[key] = one
		}
	}
}

// selfTest returns the self-test's alerts, in a stable order.
func (a *answer) selfTest() []alerts.Alert {
	var out []alerts.Alert
	for _, key := range slices.Sorted(maps.Keys(a.selfTests)) {
		out = append(out, a.selfTests[key])
	}
	return out
}

// silenceIDs returns the ids of the silences that cover the alerts of interest, sorted and without
// duplicates.
func (a *answer) silenceIDs() []string {
	ids := map[string]bool{}
	for _, alert := range a.alerts {
		for _, id := range alert.SilencedBy {
			ids[id] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// inhibitors returns the labels of the alerts that inhibit alerts of interest, by fingerprint. It
// leaves out alerts that are not in the replica's answer.
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

// nameOf returns the alert's name for messages, or its fingerprint if the name is missing or too
// long.
func nameOf(set model.LabelSet) string {
	const longest = 128
	name := string(set[model.AlertNameLabel])
	if name == "" || len(name) > longest {
		return set.Fingerprint().String()
	}
	return name
}

// timeOf returns the time in UTC. If RFC 3339 cannot express its year, timeOf returns the nearest
// time that can be expressed. It must not leave the alert out: the alert would count as resolved,
// and its silence would no longer hold a repair.
func timeOf[T instant | strfmt.DateTime](t *T) time.Time {
	if t == nil {
		return time.Time{}
	}
	return remediations.InYears(time.Time(*t))
}
