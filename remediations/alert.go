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

// These are the values of Alert.Status. Alertmanager's webhook payload uses the same values.
const (
	StatusFiring   = "firing"
	StatusResolved = "resolved"
)

// The bounds on the labels stored of one alert. Alertmanager allows much longer values.
const (
	maxAlertLabels     = 16
	maxAlertLabelBytes = 256
)

// Alert is one alert, as an annotation of the Node stores it.
type Alert struct {
	V          int               `json:"v"`
	Name       string            `json:"alertname"`
	Policy     string            `json:"policy"`
	Status     string            `json:"status"`
	StartsAt   time.Time         `json:"startsAt"`
	ReceivedAt time.Time         `json:"receivedAt"`
	Labels     map[string]string `json:"labels"`
	// Nil if no person cancelled this alert's last repair. The Node's history says so too, but
	// drops its oldest entries.
	Cancelled *CancelledRepair `json:"cancelled,omitempty"`

	// The last part of the annotation's key.
	Fingerprint string `json:"-"`
}

// Fingerprint returns the fingerprint that Alertmanager computes for an alert with these labels:
// FNV-1a over the sorted names and values. A fingerprint that arrives in a post is never trusted.
// Unlike the function of Prometheus' library, this one does not copy the labels.
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

// NewAlert returns the alert in the form that the Node stores. It keeps only the labels that name
// the target and the cluster, and the severity.
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

// RFC 3339 writes a year with four digits.
const firstYear, lastYear = 1, 9999

// InYears returns the time in UTC, or the nearest time that JSON can hold. RFC 3339 allows
// "9999-12-31T23:59:59-14:00", which in UTC is in the year 10000, and encoding it panics. Every
// time from outside must pass through here.
func InYears(t time.Time) time.Time {
	switch t = t.UTC(); {
	case t.Year() < firstYear:
		return time.Date(firstYear, time.January, 1, 0, 0, 0, 0, time.UTC)
	case t.Year() > lastYear:
		return time.Date(lastYear, time.December, 31, 23, 59, 59, 0, time.UTC)
	}
	return t
}

func inYears(t time.Time) bool { return t.Equal(InYears(t)) }

// Key returns the key of the alert's annotation.
func (a Alert) Key() string { return AlertPrefix + a.Fingerprint }

// Same reports whether two alerts are equal. It ignores the time of arrival and the cancelled
// repair.
func (a Alert) Same(b Alert) bool {
	return a.Fingerprint == b.Fingerprint && a.Name == b.Name && a.Policy == b.Policy && a.Status == b.Status &&
		a.StartsAt.Equal(b.StartsAt) && maps.Equal(a.Labels, b.Labels)
}

// CancelledRepair is a repair that a person cancelled, and when.
type CancelledRepair struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// The clocks of replicas differ. An arrival time further ahead is from a wrong clock.
const aheadMost = 2 * time.Minute

// SeenSince returns the alert a with two facts from old, the same alert as stored on the Node: when
// it first arrived, and which of its repairs a person cancelled. A post never changes these,
// because every client with the receiver's token can post any status of an alert.
func (a Alert) SeenSince(old Alert) Alert {
	if a.Fingerprint != old.Fingerprint {
		return a
	}
	if old.Cancelled != nil {
		a.Cancelled = old.Cancelled
	}
	if old.ReceivedAt.Before(a.ReceivedAt) { // otherwise the old time is from a clock that was ahead
		a.ReceivedAt = old.ReceivedAt
	}
	return a
}

// FromTheFuture reports whether the time of arrival is from a wrong clock.
func (a Alert) FromTheFuture(now time.Time) bool { return a.ReceivedAt.Sub(now) > aheadMost }

// Reads reports whether the annotation's value is the alert's encoding, apart from the time of
// arrival. It compares texts, because most alerts that arrive are repeated ones. It may return
// false for an equal alert that another version of Drydock has encoded.
func (a Alert) Reads(value string) bool {
	const key = `"receivedAt":"` // no label can contain this text: quotes in a label are escaped
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

// Encode returns the annotation's value.
func (a Alert) Encode() string { return EncodeJSON(a) }

// DecodeAlert decodes an alert from its annotation. It returns an error for a value that Drydock
// cannot have written.
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

// AlertsOn returns all alerts on a Node, oldest first. It leaves out annotations that it cannot
// decode, so they never cause a repair.
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

// Admit returns the keys of resolved alerts, oldest first, to remove so that one more alert fits on
// the Node. ok is false if the new alert does not fit even then.
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

// EncodeJSON returns JSON without HTML escapes, so that a person reads "<" as "<".
func EncodeJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("encoding a record: " + err.Error()) // only plain data is encoded here
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// DecodeStrict decodes JSON into v. Unknown keys and text after the value are errors, because
// Drydock must not act on data that this version does not understand.
func DecodeStrict(s string, v any) error {
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	// d.More() would not find all text after the value: it returns false for a closing bracket.
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("there is text after the JSON value")
	}
	return nil
}

// KeysOf returns the keys of the alerts' annotations.
func KeysOf(alerts []Alert) (out []string) {
	for _, a := range alerts {
		out = append(out, a.Key())
	}
	return out
}

// AlertOf returns the alert that caused a repair, or nil if alerts does not contain it.
func AlertOf(alerts []Alert, cause Cause) *Alert {
	i := slices.IndexFunc(alerts, func(a Alert) bool { return a.Fingerprint == cause.Alert })
	if i < 0 {
		return nil
	}
	return &alerts[i]
}
