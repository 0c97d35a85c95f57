package receiver

import (
	"fmt"
	"hash/maphash"
	"maps"
	"time"

	"drydock.dev/drydock/remediations"
)

// alert is one alert of a post, within the limits of limits.go.
type alert struct {
	// 1 to 64 labels. None has an empty value, because for Alertmanager an empty label is the same
	// as a missing one. The fingerprint must be computed from them.
	Labels map[string]string
	// "firing" or "resolved", for this alert and not for its group.
	Status string
	// Zero if the post does not say when.
	StartsAt time.Time
}

// take splits the post's alerts into usable and unusable ones. Of several alerts with the same
// labels, it keeps only the last, in the place of the first. Different labels can have the same
// identity, so take also compares the labels.
func (p *post) take(wire []wireAlert, identity func(labels map[string]string) uint64) {
	places := make(map[uint64]int, len(wire))
	p.alerts = make([]alert, 0, len(wire))
next:
	for _, w := range wire {
		labels, why := usable(w)
		if why != "" {
			p.unusable = append(p.unusable, why)
			continue
		}
		alert := alert{Labels: labels, Status: w.Status, StartsAt: w.StartsAt.UTC()}
		key := identity(labels)
		for place, taken := places[key]; taken; place, taken = places[key] {
			if maps.Equal(p.alerts[place].Labels, labels) {
				p.alerts[place] = alert
				continue next
			}
			key++ // another alert has the same hash and different labels
		}
		places[key] = len(p.alerts)
		p.alerts = append(p.alerts, alert)
	}
}

// The text is why the alert cannot be used.
func usable(w wireAlert) (map[string]string, string) {
	if w.Status != remediations.StatusFiring && w.Status != remediations.StatusResolved {
		return nil, fmt.Sprintf("its status is %.20q", w.Status)
	}
	if year := w.StartsAt.UTC().Year(); year < 1 || year > 9999 {
		return nil, fmt.Sprintf("its startsAt is in the year %d (UTC), which RFC 3339 cannot express; Drydock reads the alert when it polls Alertmanager", year)
	}
	if w.Labels.tooLong {
		return nil, fmt.Sprintf("its labels take more than %d bytes", maxMapBytes)
	}
	labels := w.Labels.values
	// Prometheus and Alertmanager drop empty labels before they compute the fingerprint, so Drydock
	// must do the same.
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

// The hashes are unpredictable, so that a client cannot choose labels with equal hashes.
var seed = maphash.MakeSeed()

// Equal labels have equal hashes, and different labels almost never do.
func identity(labels map[string]string) uint64 {
	var sum uint64
	for name, value := range labels {
		sum += maphash.String(seed, name)*3 ^ maphash.String(seed, value)
	}
	return sum
}
