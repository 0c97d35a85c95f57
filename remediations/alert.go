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

// Bounds of an alert's labels on the Node. Only the labels that a reader needs are kept, because a
// label may have a kilobyte.
const (
	maxAlertLabels     = 16
	maxAlertLabelBytes = 256
)

// Alert is one alert, as the Node stores it under AlertPrefix and the alert's fingerprint.
type Alert struct {
	V          int               `json:"v"`
	Name       string            `json:"alertname"`
	Policy     string            `json:"policy"`
	Status     string            `json:"status"`
	StartsAt   time.Time         `json:"startsAt"`
	ReceivedAt time.Time         `json:"receivedAt"`
	Labels     map[string]string `json:"labels"`
	// Cancelled is the repair of this alert that a person cancelled; nil: no repair. The alert
	// itself stores it, because the history drops its oldest entries. The annotation goes when the
	// alert has ended.
	Cancelled *CancelledRepair `json:"cancelled,omitempty"`

	// Fingerprint is the last part of the annotation's key. The value does not repeat it.
	Fingerprint string `json:"-"`
}

// Fingerprint identifies an alert by its labels, as Alertmanager computes it: FNV-1a over the
// sorted names and values. A fingerprint in a webhook's post is never used. Computing the sum here
// avoids a copy of the labels for each alert that arrives.
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

// NewAlert returns what the Node stores of an alert for the policy. It keeps the labels that name
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

// firstYear and lastYear bound the years that JSON can hold: RFC 3339 writes a year with four
// digits.
const firstYear, lastYear = 1, 9999

// InYears returns the time in UTC, or the nearest time that JSON can hold. RFC 3339 allows
// "9999-12-31T23:59:59-14:00", which in UTC is a time of the year 10000. Encoding such a time
// panics, so Drydock passes each time from outside through InYears before it stores the time.
func InYears(t time.Time) time.Time {
	switch t = t.UTC(); {
	case t.Year() < firstYear:
		return time.Date(firstYear, time.January, 1, 0, 0, 0, 0, time.UTC)
	case t.Year() > lastYear:
		return time.Date(lastYear, time.December, 31, 23, 59, 59, 0, time.UTC)
	}
	return t
}

// inYears reports whether JSON can hold the time in UTC.
func inYears(t time.Time) bool { return t.Equal(InYears(t)) }

// Key returns the key of the alert's annotation.
func (a Alert) Key() string { return AlertPrefix + a.Fingerprint }

// Same reports whether two alerts say the same; the time of arrival does not count.
func (a Alert) Same(b Alert) bool {
	return a.Fingerprint == b.Fingerprint && a.Name == b.Name && a.Policy == b.Policy && a.Status == b.Status &&
		a.StartsAt.Equal(b.StartsAt) && maps.Equal(a.Labels, b.Labels)
}

// CancelledRepair is a repair that a person cancelled, and the time.
type CancelledRepair struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// aheadMost bounds how far another replica's clock may be ahead. A wrong clock wrote each arrival
// that is later.
const aheadMost = 2 * time.Minute

// SeenSince returns the alert with what the Node remembers of it: when Drydock first wrote it
// there, and the repair that a person cancelled. A post changes neither, whether it says that the
// alert fires or has ended, because every holder of the receiver's token can post both. Only
// Alertmanager ends an episode: once Alertmanager has no such alert, the annotation goes. An alert
// that fires again then counts from the start that Alertmanager gives.
func (a Alert) SeenSince(old Alert) Alert {
	if a.Fingerprint != old.Fingerprint {
		return a
	}
	if old.Cancelled != nil {
		a.Cancelled = old.Cancelled
	}
	if old.ReceivedAt.Before(a.ReceivedAt) { // otherwise a clock that was ahead wrote the old time
		a.ReceivedAt = old.ReceivedAt
	}
	return a
}

// FromTheFuture reports whether a wrong clock wrote the time of arrival, so that it must be written
// again.
func (a Alert) FromTheFuture(now time.Time) bool { return a.ReceivedAt.Sub(now) > aheadMost }

// Reads reports whether the annotation's value says the same as the alert; the time of arrival does
// not count. It compares texts, because alerts that Alertmanager repeats arrive most often, and
// decoding would be most of their cost. False means only that the texts differ: another version may
// have written the same alert in another way.
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

// DecodeAlert reads an alert's annotation. It returns an error for a value that Drydock did not
// write.
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

// AlertsOn returns all alerts on a Node, oldest first. It leaves out alerts that it cannot read:
// they cannot cause a repair, and the next poll writes a real alert again.
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

// Admit returns the keys to remove so that one more alert fits on the Node. The oldest resolved
// alerts go first; a firing alert never goes. ok is false if the alert does not fit at all.
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

// DecodeStrict refuses unknown keys and any text after the value: Drydock must not act on what this
// version does not understand.
func DecodeStrict(s string, v any) error {
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	// Not d.More(), which takes a surplus closing bracket for the end.
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows the JSON value")
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

// AlertOf returns the alert of the cause; nil: the alerts do not have it.
func AlertOf(alerts []Alert, cause Cause) *Alert {
	i := slices.IndexFunc(alerts, func(a Alert) bool { return a.Fingerprint == cause.Alert })
	if i < 0 {
		return nil
	}
	return &alerts[i]
}
