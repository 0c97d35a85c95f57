package receiver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// take sorts the alerts into usable and not. Of those with the same labels the
// last one stands, in the place of the first.
func (p *post) take(wire []wireAlert) {
	places := make(map[string]int, len(wire))
	for _, w := range wire {
		labels, why := usable(w)
		if why != "" {
			p.unusable = append(p.unusable, why)
			continue
		}
		alert := Alert{
			Labels:      labels,
			Annotations: readable(w.Annotations),
			Status:      w.Status,
			StartsAt:    w.StartsAt.UTC(),
			EndsAt:      w.EndsAt.UTC(),
		}
		if len(w.GeneratorURL) <= maxURLBytes {
			alert.GeneratorURL = w.GeneratorURL
		}
		key := identity(labels)
		if place, again := places[key]; again {
			p.alerts[place] = alert
			continue
		}
		places[key] = len(p.alerts)
		p.alerts = append(p.alerts, alert)
	}
}

// usable returns the labels that identify the alert, or why there are none.
func usable(w wireAlert) (map[string]string, string) {
	if w.Status != StatusFiring && w.Status != StatusResolved {
		return nil, fmt.Sprintf("its status is %.20q", w.Status)
	}
	if w.Labels.tooLong {
		return nil, fmt.Sprintf("its labels take more than %d bytes", maxMapBytes)
	}
	labels := w.Labels.values
	// Prometheus and Alertmanager drop empty labels, so keeping one here would
	// give the alert a fingerprint that Alertmanager does not know.
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	if len(labels) == 0 {
		return nil, "it has no labels"
	}
	if len(labels) > maxLabels {
		return nil, fmt.Sprintf("it has %d labels, more than %d", len(labels), maxLabels)
	}
	for name, value := range labels {
		if len(name) > maxNameBytes || len(value) > maxValueBytes {
			return nil, fmt.Sprintf("it has a label whose name is longer than %d bytes or whose value is longer than %d", maxNameBytes, maxValueBytes)
		}
	}
	return labels, ""
}

// readable returns the annotations within the bounds. They are for people, so
// one that is too long does not make its alert unusable.
func readable(t texts) map[string]string {
	maps.DeleteFunc(t.values, func(name, value string) bool {
		return len(name) > maxNameBytes || len(value) > maxValueBytes
	})
	if len(t.values) > maxAnnotations {
		for _, name := range slices.Sorted(maps.Keys(t.values))[maxAnnotations:] {
			delete(t.values, name)
		}
	}
	return t.values
}

// identity is equal for equal labels, and for no others: the separator is a byte
// that no decoded text holds, since JSON's decoder leaves only valid UTF-8.
func identity(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(name)
		b.WriteByte(0xff)
		b.WriteString(labels[name])
		b.WriteByte(0xff)
	}
	return b.String()
}
