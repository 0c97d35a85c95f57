package receiver

import (
	"fmt"
	"hash/maphash"
	"maps"
	"time"

	"drydock.dev/drydock/remediations"
)

// alert is one alert of a post, within the bounds of limits.go. The Recorder decides whether it is
// usable.
type alert struct {
	// Labels identify the alert. There are 1 to 64, none of them empty, because an empty label
	// equals a missing one. The fingerprint must be computed from them.
	Labels map[string]string
	// Status is "firing" or "resolved", of this alert and not of its group.
	Status string
	// StartsAt is when the alert began to fire. Zero: the post does not say.
	StartsAt time.Time
}

// take splits the alerts into usable and unusable ones. Of alerts with the same labels it keeps the
// last, in the place of the first. identity is a hash, equal for different labels only by chance.
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
			key++ // a different set of labels has this hash
		}
		places[key] = len(p.alerts)
		p.alerts = append(p.alerts, alert)
	}
}

// usable returns the labels that identify the alert, or why the alert cannot be used.
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
	// Prometheus and Alertmanager drop empty labels. Keeping one here would give the alert a
	// fingerprint that Alertmanager does not have.
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

// seed keeps clients that choose labels from producing equal hashes.
var seed = maphash.MakeSeed()

// identity returns a hash: equal for equal labels, and almost never for others.
func identity(labels map[string]string) uint64 {
	var sum uint64
	for name, value := range labels {
		sum += maphash.String(seed, name)*3 ^ maphash.String(seed, value)
	}
	return sum
}
