package remediations

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Statuses of an alert, as Alertmanager's payload names them.
const (
	StatusFiring   = "firing"
	StatusResolved = "resolved"
)

// An alert's labels on the Node: those a reader needs, never all, since an alert may carry a kilobyte each.
const (
	maxAlertLabels     = 16
	maxAlertLabelBytes = 256
)

// Alert is one alert as the Node carries it under AlertPrefix + its fingerprint.
type Alert struct {
	V          int               `json:"v"`
	Name       string            `json:"alertname"`
	Policy     string            `json:"policy"`
	Status     string            `json:"status"`
	StartsAt   time.Time         `json:"startsAt"`
	ReceivedAt time.Time         `json:"receivedAt"`
	Labels     map[string]string `json:"labels"`
	// Cancelled is the repair of this alert that a person cancelled; nil: none. The alert itself remembers it, because the
	// history forgets its oldest entries, and the key goes when the alert has ended.
	Cancelled *CancelledRepair `json:"cancelled,omitempty"`

	// Fingerprint is the key's last part, not repeated in the value.
	Fingerprint string `json:"-"`
}

// Fingerprint identifies an alert by its labels, as Alertmanager computes it: FNV-1a over the sorted names and values. It
// is never taken from a post. Computed here, no copy of the labels is made for each alert that arrives.
func Fingerprint(labels map[string]string) string {
	var some [32]string
	names := some[:0]
	for name := range labels {
		names = append(names, name)
	}
	slices.Sort(names)
	const offset, prime, separator = 14695981039346656037, 1099511628211, 0xff
	sum := uint64(offset)
	for _, name := range names {
		for _, text := range [2]string{name, labels[name]} {
			for i := range len(text) {
				sum = (sum ^ uint64(text[i])) * prime
			}
			sum = (sum ^ separator) * prime
		}
	}
	return model.Fingerprint(sum).String()
}

// NewAlert makes what is kept of an alert for the policy: the labels that name the target and the cluster, and severity.
func (c *Config) NewAlert(p *Policy, labels map[string]string, status string, startsAt, receivedAt time.Time) Alert {
	kept := map[string]string{}
	for _, k := range append(slices.Clone(p.Labels), c.ClusterLabel, "severity") {
		if v, ok := labels[k]; ok && k != "" && len(kept) < maxAlertLabels {
			kept[k] = clip(v, maxAlertLabelBytes-len("…"))
		}
	}
	return Alert{
		V: RecordVersion, Name: clip(labels[model.AlertNameLabel], maxAlertLabelBytes), Policy: p.Name, Status: status,
		StartsAt: InYears(startsAt), ReceivedAt: receivedAt.UTC().Truncate(time.Second), Labels: kept,
		Fingerprint: Fingerprint(labels),
	}
}

// firstYear and lastYear are those that JSON can hold, because RFC 3339 writes a year with four digits.
const firstYear, lastYear = 1, 9999

// InYears gives the time in UTC, and the nearest one that JSON can hold where it cannot hold this one: RFC 3339 allows
// "9999-12-31T23:59:59-14:00", which is a time of the year 10000 in UTC. Encoding such a time panics, so each time that
// comes from outside goes through here before Drydock keeps it.
func InYears(t time.Time) time.Time {
	switch t = t.UTC(); {
	case t.Year() < firstYear:
		return time.Date(firstYear, time.January, 1, 0, 0, 0, 0, time.UTC)
	case t.Year() > lastYear:
		return time.Date(lastYear, time.December, 31, 23, 59, 59, 0, time.UTC)
	}
	return t
}

// inYears says that JSON can hold the time in UTC.
func inYears(t time.Time) bool { return t.Equal(InYears(t)) }

// Key is the annotation's key of the alert.
func (a Alert) Key() string { return AlertPrefix + a.Fingerprint }

// Same says that two alerts tell the same, whenever they arrived.
func (a Alert) Same(b Alert) bool {
	return a.Fingerprint == b.Fingerprint && a.Name == b.Name && a.Policy == b.Policy && a.Status == b.Status &&
		a.StartsAt.Equal(b.StartsAt) && maps.Equal(a.Labels, b.Labels)
}

// CancelledRepair is a repair that a person cancelled, and when.
type CancelledRepair struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// aheadMost is how far the clock of another replica may be ahead: a later arrival than that was noted by a clock that is wrong.
const aheadMost = 2 * time.Minute

// SeenSince gives the alert what the Node remembers of it: when it was first written there, and that a person cancelled its
// repair. A post changes neither, whether it says that the alert fires or that it has ended, because whoever has the
// receiver's token can post both. Only Alertmanager ends an episode: once it has no such alert, the key goes, and what fires
// again counts from the beginning that Alertmanager gives.
func (a Alert) SeenSince(old Alert) Alert {
	if a.Fingerprint != old.Fingerprint {
		return a
	}
	a.Cancelled = old.Cancelled
	if old.ReceivedAt.Before(a.ReceivedAt) { // otherwise a clock that was ahead noted it
		a.ReceivedAt = old.ReceivedAt
	}
	return a
}

// FromTheFuture says that the arrival was noted by a clock that is wrong, and must be noted again.
func (a Alert) FromTheFuture(now time.Time) bool { return a.ReceivedAt.Sub(now) > aheadMost }

// Reads says that the annotation's value tells the same as the alert, whenever that arrived. It compares texts, as one
// version writes them: an alert that Alertmanager repeats is the commonest thing that arrives, and decoding what is there
// would be most of what it costs. False where the text differs; the value may tell the same all the same.
func (a Alert) Reads(value string) bool {
	const key = `"receivedAt":"` // no label can hold it: quotes in a text are escaped
	before, after, _ := strings.Cut(a.Encode(), key)
	beforeThat, afterThat, ok := strings.Cut(value, key)
	if !ok || before != beforeThat {
		return false
	}
	_, after, _ = strings.Cut(after, `"`)
	at, afterThat, _ := strings.Cut(afterThat, `"`)
	_, err := time.Parse(time.RFC3339, at)
	return err == nil && after == afterThat
}

// Encode gives the annotation's value.
func (a Alert) Encode() string { return EncodeJSON(a) }

// DecodeAlert reads an alert's annotation. A value that is not one of ours is an error; nothing is guessed.
func DecodeAlert(key, value string) (Alert, error) {
	var a Alert
	if err := DecodeStrict(value, &a); err != nil {
		return Alert{}, fmt.Errorf("reading %s: %w", clip(key, 80), err)
	}
	if a.V != RecordVersion || a.Policy == "" || (a.Status != StatusFiring && a.Status != StatusResolved) || !inYears(a.StartsAt) || !inYears(a.ReceivedAt) {
		return Alert{}, fmt.Errorf("reading %s: not an alert of version %d", clip(key, 80), RecordVersion)
	}
	a.Fingerprint = strings.TrimPrefix(key, AlertPrefix)
	return a, nil
}

// AlertsOn reads all alerts on a Node, oldest first. An unreadable one is left out: it cannot cause a repair, and the
// poll brings a real one again.
func AlertsOn(annotations map[string]string) []Alert {
	var out []Alert
	for k, v := range annotations {
		if !strings.HasPrefix(k, AlertPrefix) {
			continue
		}
		if a, err := DecodeAlert(k, v); err == nil {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b Alert) int {
		if c := a.StartsAt.Compare(b.StartsAt); c != 0 {
			return c
		}
		return strings.Compare(a.Fingerprint, b.Fingerprint)
	})
	return out
}

// Admit says which keys must go for one more alert to fit on the Node, and whether it fits at all: the oldest resolved
// ones go first; a firing one is never dropped for another.
func Admit(annotations map[string]string, a Alert) (drop []string, ok bool) {
	count, size := 0, len(a.Key())+len(a.Encode())
	for k, v := range annotations {
		if k == a.Key() {
			continue
		}
		switch {
		case strings.HasPrefix(k, AlertPrefix):
			count, size = count+1, size+len(k)+len(v)
		case strings.HasPrefix(k, sidecarPrefix):
			size += len(k) + len(v)
		}
	}
	fits := func() bool { return count < MaxAlertsPerNode && size <= MaxAlertBytes }
	for _, old := range AlertsOn(annotations) {
		if fits() {
			break
		}
		if old.Status == StatusResolved && old.Fingerprint != a.Fingerprint {
			drop = append(drop, old.Key())
			count--
			size -= len(old.Key()) + len(annotations[old.Key()])
		}
	}
	if !fits() {
		return nil, false
	}
	return drop, true
}

// EncodeJSON gives JSON without HTML escapes, so that a person reads "<" as "<".
func EncodeJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("encoding a record: " + err.Error()) // only plain data is encoded here
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// DecodeStrict refuses unknown keys and anything behind the value: what this version does not understand, it must not act on.
func DecodeStrict(s string, v any) error {
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	// Not d.More(): that takes a closing bracket too many for the end.
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows the JSON value")
	}
	return nil
}

// KeysOf are their annotations' keys.
func KeysOf(alerts []Alert) (out []string) {
	for _, a := range alerts {
		out = append(out, a.Key())
	}
	return out
}

// AlertOf is the cause's alert; nil: it is none of these.
func AlertOf(alerts []Alert, cause Cause) *Alert {
	i := slices.IndexFunc(alerts, func(a Alert) bool { return a.Fingerprint == cause.Alert })
	if i < 0 {
		return nil
	}
	return &alerts[i]
}
