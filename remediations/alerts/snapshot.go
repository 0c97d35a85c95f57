package alerts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// Snapshot is the answers of the Alertmanagers to the last poll.
type Snapshot struct {
	// When the poll began: nothing later is known. Zero if there was no poll yet.
	AskedAt time.Time
	// One for each address of each configured URL, and one for a URL whose host name has no
	// address.
	Replicas []Replica
	// How many of the last polls in a row found the Watchdog on no replica. Negative if no poll has
	// ever found it.
	WatchdogMisses int
}

// After so many polls in a row without a Watchdog, the snapshot cannot be trusted.
const watchdogMissLimit = 3

// BlindCause returns why the snapshot as a whole cannot be trusted, or "".
func (s *Snapshot) BlindCause(c *remediations.Config) string {
	if s == nil || s.AskedAt.IsZero() {
		return "no Alertmanager has been asked yet"
	}
	answered := 0
	for _, r := range s.Replicas {
		if r.Err != nil {
			continue
		}
		answered++
		by := r.BlindBy
		if by == "" && r.SourceDown && !s.sourceSeen() {
			by = SourceDown
		}
		if by != "" {
			return fmt.Sprintf("the alert %s is active, so the metrics that alerts rest on are missing", by)
		}
	}
	if c.Watchdog && s.WatchdogMisses < 0 && answered > 0 {
		return "no Alertmanager has shown the Watchdog alert yet"
	}
	if c.Watchdog && s.WatchdogMisses >= watchdogMissLimit {
		return fmt.Sprintf("no Alertmanager has shown the Watchdog alert for %s", text.Count(s.WatchdogMisses, "poll"))
	}
	return ""
}

// SourceDown is the shipped alert about a Prometheus that does not see the nodes.
const SourceDown = "DrydockSourceDown"

// sourceSeen reports whether at least one Prometheus sees all nodes now. One is enough: one of two
// replicas may run on a node without a network, and only one shard of a sharded Prometheus has the
// nodes.
func (s *Snapshot) sourceSeen() bool {
	return slices.ContainsFunc(s.Replicas, func(r Replica) bool { return r.Err == nil && r.SourceSeen != nil && !r.SourceSeen.silent(s.AskedAt) })
}

// Sees reports whether nodes can be counted by the alerts in this snapshot: at least one replica
// answered, BlindCause is empty, and the last poll found the Watchdog.
func (s *Snapshot) Sees(c *remediations.Config) bool {
	return s.BlindCause(c) == "" && (!c.Watchdog || s.WatchdogMisses == 0) && slices.ContainsFunc(s.Replicas, func(r Replica) bool { return r.Err == nil })
}

// Verdict is the merged answer about one alert, or about all alerts of a node.
type Verdict struct {
	// Why the repair must wait. Empty if the alert is confirmed: it is active on a replica whose
	// answer counts.
	Reason  remediations.Reason
	Message string
	// When the silences that hold the repair end. Zero if that is unknown, or if the repair is held
	// for another reason.
	Until time.Time
	// According to the replica that confirms the alert.
	StartsAt time.Time
	// Too few Alertmanagers answer, so the reason holds the repairs of all alerts.
	Fleetwide bool
	// The alert has ended: a replica whose answer counts has answered, and no replica that answered
	// has the alert. A muted alert has not ended.
	Gone bool
}

// VerdictFor merges the replicas' answers about the alert (invariant 5 in remediations/doc.go). It
// is confirmed if at least one replica reports it active and also has the Watchdog. One replica
// that reports it silenced, inhibited or muted is enough to hold the repair. Replicas that do not
// answer are skipped. The silence own, which was created for this repair, does not hold it.
func (s *Snapshot) VerdictFor(fingerprint string, c *remediations.Config, own string) Verdict {
	h := merged{snapshot: s, config: c, own: own}
	h.merge(func(r *Replica) {
		if a, ok := r.Alerts[fingerprint]; ok {
			h.alert(r, a)
		}
	})
	switch {
	case h.absent() != nil:
		return *h.absent()
	case h.active && !h.confirmed && !h.silent.IsZero():
		return Verdict{Reason: remediations.ReasonBlind, Message: fmt.Sprintf("the alert was last sent to Alertmanager at %s and should have been sent again since, so its source seems to be gone", h.silent.UTC().Format(time.RFC3339))}
	case h.active && !h.confirmed:
		return Verdict{Reason: remediations.ReasonBlind, Message: "the Alertmanager that has the alert does not show the Watchdog, so its answer does not count"}
	case h.muted() != nil:
		return *h.muted()
	case h.active:
		return Verdict{StartsAt: h.startsAt}
	case h.unrouted:
		return Verdict{Reason: remediations.ReasonAlertUnconfirmed, Message: fmt.Sprintf("the alert is not routed to receiver %q (alertmanager.receiver) but to %s, so Drydock does nothing for it; correct Alertmanager's route or alertmanager.receiver", h.config.Receiver, cmp.Or(text.Quoted(h.elsewhere, 200), "no receiver"))}
	case h.known:
		return Verdict{Reason: remediations.ReasonAlertUnconfirmed, Message: "Alertmanager has the alert but has not processed it yet"}
	default:
		return Verdict{Reason: remediations.ReasonAlertUnconfirmed, Gone: h.alive, Message: fmt.Sprintf("none of the %d Alertmanagers that answered has this alert firing", h.answered)}
	}
}

// VerdictForNode returns the verdict for a person's request about the node, which needs no active
// alert. A silence, an inhibition or a time interval that covers any alert about the node holds it.
// Gone is true if the answer of at least one replica counts: a request never waits for the end of
// an alert.
func (s *Snapshot) VerdictForNode(node string, c *remediations.Config, own string) Verdict {
	h := merged{snapshot: s, config: c, own: own}
	h.merge(func(r *Replica) {
		for _, a := range r.Alerts {
			if c.Names(a.Labels, node) {
				h.alert(r, a)
			}
		}
	})
	switch {
	case h.absent() != nil:
		return *h.absent()
	case h.muted() != nil:
		v := *h.muted()
		v.Gone = h.alive
		return v
	}
	return Verdict{Gone: h.alive}
}

type merged struct {
	snapshot *Snapshot
	config   *remediations.Config
	own      string

	answered             int
	dead                 []string
	alive, known         bool
	active, confirmed    bool
	startsAt, silent     time.Time
	silences             map[string]Silence
	mutedBy, inhibitedBy []string
	// The alert is active on a replica that does not route it to Drydock, and goes to these
	// receivers instead.
	unrouted  bool
	elsewhere []string
}

func (h *merged) merge(each func(*Replica)) {
	for i := range h.snapshot.Replicas {
		r := &h.snapshot.Replicas[i]
		if r.Err != nil {
			h.dead = append(h.dead, fmt.Sprintf("%s: %v", r.URL, r.Err))
			continue
		}
		h.answered++
		h.alive = h.alive || r.Watchdog || !h.config.Watchdog
		each(r)
	}
}

func (h *merged) alert(r *Replica, a Alert) {
	h.known = true
	others := 0
	for _, id := range a.SilencedBy {
		if id == h.own {
			continue
		}
		others++
		if h.silences == nil {
			h.silences = map[string]Silence{}
		}
		if s, ok := r.Silences[id]; ok || h.silences[id] == (Silence{}) {
			h.silences[id] = s
		}
	}
	h.mutedBy = append(h.mutedBy, a.MutedBy...)
	for _, fingerprint := range a.InhibitedBy {
		by := r.Alerts[fingerprint].Labels
		if by == nil {
			by = r.Inhibitors[fingerprint]
		}
		h.inhibitedBy = append(h.inhibitedBy, nameOf(fingerprint, by)+h.sameNode(a.Labels, by))
	}
	// An alert that only Drydock's own silence covers counts as active.
	ours := len(a.SilencedBy) > 0 && others == 0 && len(a.InhibitedBy) == 0
	if !a.Active && !ours {
		return
	}
	if !a.RoutedHere(h.config) {
		h.unrouted, h.elsewhere = true, append(h.elsewhere, a.Receivers...)
		return
	}
	h.active = true
	switch {
	case a.silent(h.snapshot.AskedAt):
		h.silent = a.UpdatedAt
	case r.Watchdog || !h.config.Watchdog:
		h.confirmed, h.startsAt = true, a.StartsAt
	}
}

// The fingerprint alone if the replica did not report the alert's labels.
func nameOf(fingerprint string, labels map[string]string) string {
	if name := labels[model.AlertNameLabel]; name != "" {
		return name + " (" + fingerprint + ")"
	}
	return fingerprint
}

// A phrase for messages if both alerts are about the same node, by the labels that policies read,
// and otherwise "".
func (h *merged) sameNode(a, by map[string]string) string {
	for _, label := range h.config.NodeLabels() {
		if node := a[label]; node != "" && node == by[label] {
			return " about the same node"
		}
	}
	return ""
}

// absent returns nil if enough replicas answered.
func (h *merged) absent() *Verdict {
	switch {
	case h.answered == 0:
		return &Verdict{Reason: remediations.ReasonAlertUnconfirmed, Fleetwide: true, Message: fmt.Sprintf("none of %d Alertmanagers answered (%s); nothing is done until one does", len(h.snapshot.Replicas), text.Line(strings.Join(h.dead, "; "), 200))}
	case h.config.RequireAll && len(h.dead) > 0:
		return &Verdict{Reason: remediations.ReasonAlertUnconfirmed, Fleetwide: true, Message: fmt.Sprintf("alertmanager.require is all, and %s", text.Line(strings.Join(h.dead, "; "), 200))}
	}
	return nil
}

// muted returns nil if nothing mutes the alert.
func (h *merged) muted() *Verdict {
	switch {
	case len(h.silences) > 0:
		said, until := describe(h.silences)
		return &Verdict{Reason: remediations.ReasonSilenced, Until: until, Message: said + "; the repair continues when that ends"}
	case len(h.mutedBy) > 0:
		return &Verdict{Reason: remediations.ReasonSilenced, Message: fmt.Sprintf("muted by Alertmanager's time interval %s; the repair continues when that ends", names(h.mutedBy))}
	case len(h.inhibitedBy) > 0:
		return &Verdict{Reason: remediations.ReasonInhibited, Message: "inhibited by the alert " + names(h.inhibitedBy)}
	}
	return nil
}

func names(all []string) string {
	return text.Line(strings.Join(slices.Compact(slices.Sorted(slices.Values(all))), ", "), 160)
}

const silencesNamed = 2

// The time when the last silence ends is zero if the end of any is unknown.
func describe(silences map[string]Silence) (string, time.Time) {
	var parts []string
	var until time.Time
	known := true
	for _, id := range slices.Sorted(maps.Keys(silences)) {
		s := silences[id]
		part := "silence " + text.Line(id, 40)
		if s.EndsAt.IsZero() {
			known = false
		} else {
			part += fmt.Sprintf(" of %s (%s) until %s", text.Line(s.Author, 60), text.Line(s.Comment, 80), s.EndsAt.UTC().Format(time.RFC3339))
		}
		if s.EndsAt.After(until) {
			until = s.EndsAt
		}
		parts = append(parts, part)
	}
	if more := len(parts) - silencesNamed; more > 0 {
		parts = append(parts[:silencesNamed], fmt.Sprintf("%d more", more))
	}
	if !known {
		until = time.Time{}
	}
	return "covered by " + strings.Join(parts, " and "), until
}
