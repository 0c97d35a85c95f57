package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

const (
	// alertTail is how long an alert outlives its cause: until the next scrape and evaluation.
	alertTail = 20 * time.Second
	// sendEvery is how often the source sends its alerts again. alertLife is how long each sending
	// lasts.
	sendEvery = 15 * time.Second
	alertLife = 8 * sendEvery
)

// replicaState is the state of one Alertmanager. empty means that it was restarted, and has the
// Watchdog but no other alert yet. ahead means that its clock is far ahead.
type replicaState struct{ dead, noWatchdog, empty, ahead bool }

// labelsOf are the labels of the machine's alert. labelsOfSecond are the labels of its alert of the
// milder policy.
func labelsOf(node string) map[string]string {
	return map[string]string{"alertname": "NodeNotReady", "node": node, "remediation": "node-not-ready"}
}

func labelsOfSecond(node string) map[string]string {
	return map[string]string{"alertname": "KubeletDown", "node": node, "remediation": "kubelet-down"}
}

// labelsOfForged are the labels of an alert that only looks like the machine's.
func labelsOfForged(node string) map[string]string {
	forged := labelsOf(node)
	forged["team"] = "nobody"
	return forged
}

func fingerprintOf(node string) string { return remediations.Fingerprint(labelsOf(node)) }

// sent is one alert as the source sent it.
type sent struct {
	node   string
	labels map[string]string
	starts time.Time
	at     time.Time
	// forged means that the alert was posted into Alertmanager's own API, which needs no
	// credentials. No route sends such an alert to Drydock.
	forged bool
	pod    *gated // if set, the alert is about this pod's sidecar, or about this location
	place  *place
}

// sending are the alerts that the source has sent, or the last ones before it died.
func (w *world) sending() []sent {
	if w.sourceDead {
		return w.lastSent
	}
	var out []sent
	at := time.Now().Truncate(sendEvery)
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		m := w.machines[name]
		if m.firing() {
			starts := m.since
			if m.backdated {
				starts = starts.Add(-time.Hour)
			}
			out = append(out, sent{node: name, labels: labelsOf(name), starts: starts, at: at})
		}
		if m.forged {
			out = append(out, sent{node: name, labels: labelsOfForged(name), starts: at.Add(-time.Hour), at: at, forged: true})
		}
		if m.second && !m.well() {
			out = append(out, sent{node: name, labels: labelsOfSecond(name), starts: m.since, at: at})
		}
	}
	for i := range w.crowd {
		labels := labelsOf("n0")
		labels["core"] = strconv.Itoa(i)
		out = append(out, sent{node: "n0", labels: labels, starts: time.Now().Add(-time.Hour), at: at})
	}
	for _, nonsense := range w.nonsense {
		out = append(out, sent{labels: labelsOf(nonsense), starts: time.Now().Add(-time.Hour), at: at})
	}
	return append(append(out, w.sidecarsSent(at)...), w.meshSent(at)...)
}

// killSource ends the source of alerts. Its alerts expire by themselves, each a little earlier or
// later.
func (w *world) killSource() {
	if w.sourceDead {
		return
	}
	w.lastSent = w.sending()
	for i := range w.lastSent {
		w.lastSent[i].at = w.lastSent[i].at.Add(-time.Duration(i%3) * 4 * time.Second)
	}
	w.sourceDead, w.sourceDied = true, time.Now()
}

func (w *world) reviveSource() { w.sourceDead = false }

// answer is the current answer of one Alertmanager.
func (w *world) answer(i int) alerts.Replica {
	now, url, r := time.Now(), "http://alertmanager-"+strconv.Itoa(i), w.replicas[i]
	if r.dead {
		return alerts.Replica{URL: url, Err: fmt.Errorf("connection refused")}
	}
	word := alerts.Replica{URL: url, BlindBy: w.blindBy, Alerts: map[string]alerts.Alert{}}
	watchdogAt := now.Truncate(sendEvery)
	if w.sourceDead {
		watchdogAt = w.sourceDied.Truncate(sendEvery)
	}
	word.SelfTest = w.selfTest
	if !r.noWatchdog && now.Before(watchdogAt.Add(alertLife)) {
		word.Watchdog, word.WatchdogAt = true, watchdogAt
		if r.ahead {
			word.WatchdogAt = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
		}
	}
	for _, s := range w.sending() {
		m := w.machines[s.node]
		if r.empty || !now.Before(s.at.Add(alertLife)) || (m != nil && m.unheardBy && i == 1) {
			continue
		}
		a := alerts.Alert{Labels: s.labels, StartsAt: s.starts, UpdatedAt: s.at, EndsAt: s.at.Add(alertLife), Receivers: []string{"drydock", "pager"}}
		if s.forged {
			a.Receivers = []string{"null"}
		}
		if m != nil {
			if m.silenced && (m.silencedHere == 0 || m.silencedHere == i+1) {
				a.SilencedBy = []string{"maintenance"}
			}
			if m.inhibited {
				a.InhibitedBy = []string{"ClusterDown"}
			}
		}
		if s.pod != nil && s.pod.silenced {
			a.SilencedBy = []string{"maintenance"}
		}
		if s.pod != nil && s.pod.inhibited {
			a.InhibitedBy = []string{"ChainHalted"}
		}
		if s.place != nil && s.place.silenced {
			a.SilencedBy = []string{"maintenance"}
		}
		if s.place != nil && s.place.inhibited {
			a.InhibitedBy = []string{"ClusterDown"}
		}
		a.Active = len(a.SilencedBy)+len(a.InhibitedBy) == 0 && (m == nil || !m.unprocessed)
		word.Alerts[remediations.Fingerprint(s.labels)] = a
	}
	return word
}

// post writes the machine's alert on its Node, as the receiver does.
func (w *world) post(name, status string) {
	if m := w.machines[name]; m != nil {
		w.postSince(name, status, m.since)
	}
}

// postSince writes the alert with an earlier state: late, twice, or out of order.
func (w *world) postSince(name, status string, since time.Time) {
	a := w.config.NewAlert(w.config.Policies[0], labelsOf(name), status, since, time.Now())
	w.edit(name, func(n *corev1.Node) {
		if old, err := remediations.DecodeAlert(a.Key(), n.Annotations[a.Key()]); err == nil {
			a = a.SeenSince(old)
		}
		drop, ok := remediations.Admit(n.Annotations, a)
		for _, key := range drop {
			delete(n.Annotations, key)
		}
		if ok {
			n.Annotations[a.Key()] = a.Encode()
		}
	})
}
