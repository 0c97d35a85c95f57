package backtest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/common/model"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// alertmanager simulates the Alertmanager between the recorded alerts and Drydock: it groups its
// posts, and inhibits.
type alertmanager struct {
	wants     func(labels map[string]string) bool
	blindWhen []labels.Matchers
	receiver  string
	root      *Route
	resend    time.Duration
	rules     []*inhibition
	// silenced are the nodes with a silence.
	silenced map[string]bool

	active map[string]*firing
	groups map[string]*group
	// log is the last post of each group with a firing alert. It outlives the group.
	log map[string]*posted
	// answer is the current answer while no alert changes. Nil: it must be made.
	answer *alerts.Replica
}

// inhibition is one rule, with the firing alerts that match its source side.
type inhibition struct {
	*Inhibition
	sources map[string]*firing
}

// firing is one firing alert.
type firing struct {
	fingerprint string
	labels      map[string]string
	set         model.LabelSet
	startsAt    time.Time
	inhibitedBy []string
	receivers   []string
	// on is the node that the alert is about. Empty: no existing node.
	on string
}

// group is the alerts that one route posts together.
type group struct {
	route *Route
	// flush is when the group is posted next, if it has changed.
	flush time.Time
	// alerts are firing. ended have ended since the last flush.
	alerts, ended map[string]*firing
}

// posted is one post: the alerts that it reported as firing, and those that it reported as
// resolved.
type posted struct {
	at          time.Time
	fires, over map[string]*firing
}

func newAlertmanager(c *Routing, core *remediations.Config, blindWhen []labels.Matchers, resend time.Duration) *alertmanager {
	a := &alertmanager{
		wants: core.Wants, blindWhen: blindWhen, receiver: core.Receiver, root: c.Route, resend: cmp.Or(resend, DefaultResend),
		active: map[string]*firing{}, groups: map[string]*group{}, log: map[string]*posted{}, silenced: map[string]bool{},
	}
	for _, r := range c.Inhibit {
		a.rules = append(a.rules, &inhibition{r, map[string]*firing{}})
	}
	return a
}

// receives reports whether a route's receiver is Drydock's. The operator prefixes a receiver's name
// with namespace/name/.
func receives(drydock, name string) bool {
	return drydock == "" || name == drydock || strings.HasSuffix(drydock, "/"+name)
}

// begin adds an alert that fires, for the first time or again.
func (a *alertmanager) begin(f *firing, now time.Time) {
	a.answer = nil
	for _, r := range a.root.of(f.set) {
		if !receives(a.receiver, r.Receiver) {
			continue
		}
		f.receivers = []string{a.receiver}
		g := a.groupOf(r, f.set)
		if wait := time.Duration(*r.Wait); g.flush.IsZero() {
			if g.flush = now.Add(wait); f.startsAt.Add(wait).Before(now) {
				g.flush = now // the alert is old enough
			}
		}
		g.alerts[f.fingerprint] = f
		delete(g.ended, f.fingerprint)
	}
	a.active[f.fingerprint] = f
	for _, r := range a.rules {
		if r.source.Matches(f.set) {
			r.sources[f.fingerprint] = f
		}
	}
}

// end removes an alert that has ended.
func (a *alertmanager) end(fingerprint string) {
	f := a.active[fingerprint]
	if f == nil {
		return
	}
	a.answer = nil
	delete(a.active, fingerprint)
	for _, r := range a.rules {
		delete(r.sources, fingerprint)
	}
	for _, g := range a.groups {
		if g.alerts[fingerprint] != nil {
			delete(g.alerts, fingerprint)
			g.ended[fingerprint] = f
		}
	}
}

// silence adds or ends a silence about a node.
func (a *alertmanager) silence(s history.Silence) {
	a.answer = nil
	if a.silenced[s.Node] = true; s.Ended {
		delete(a.silenced, s.Node)
	}
}

func (a *alertmanager) groupOf(r *Route, set model.LabelSet) *group {
	key := r.group(set)
	g := a.groups[key]
	if g == nil {
		g = &group{route: r, alerts: map[string]*firing{}, ended: map[string]*firing{}}
		a.groups[key] = g
	}
	return g
}

// due returns when the next group is flushed. Zero: no group is.
func (a *alertmanager) due() (at time.Time) {
	for _, g := range a.groups {
		at = earliest(at, g.flush)
	}
	return at
}

// post sends the posts that are due now, group by group.
func (a *alertmanager) post(now time.Time, send func(f *firing, status string)) (any bool) {
	for _, key := range slices.Sorted(maps.Keys(a.groups)) {
		g := a.groups[key]
		if g.flush.After(now) {
			continue
		}
		p := &posted{now, a.loud(g.alerts), a.loud(g.ended)}
		if p.news(a.log[key], time.Duration(*g.route.Repeat)) {
			if any, a.log[key] = true, p; len(p.fires) == 0 {
				delete(a.log, key) // as if nothing had been posted yet
			}
			for _, fp := range slices.Sorted(maps.Keys(p.fires)) {
				send(p.fires[fp], remediations.StatusFiring)
			}
			for _, fp := range slices.Sorted(maps.Keys(p.over)) {
				send(p.over[fp], remediations.StatusResolved)
			}
		}
		clear(g.ended)
		if g.flush = now.Add(time.Duration(*g.route.Interval)); len(g.alerts) == 0 {
			delete(a.groups, key)
		}
	}
	return any
}

// loud returns the alerts that are neither inhibited nor silenced.
func (a *alertmanager) loud(all map[string]*firing) map[string]*firing {
	if len(all) == 0 {
		return nil
	}
	out := make(map[string]*firing, len(all))
	for fp, f := range all {
		if a.mute(f); len(f.inhibitedBy) == 0 && !a.silenced[f.on] {
			out[fp] = f
		}
	}
	return out
}

// news reports whether p is posted after last, which is nil for a first post. It follows
// Alertmanager's rule, needsUpdate in notify/dedup_stage.go of version 0.34.
func (p *posted) news(last *posted, repeat time.Duration) bool {
	if len(p.fires)+len(p.over) == 0 {
		return false
	}
	if last != nil && p.at.Sub(last.at) >= 2*repeat {
		last = nil // Alertmanager has forgotten it
	}
	switch {
	case last == nil:
		return len(p.fires) > 0
	case !within(p.fires, last.fires):
		return true
	case len(p.fires) == 0:
		return len(last.fires) > 0
	}
	return !within(p.over, last.over) || p.at.Sub(last.at) > repeat
}

// within reports whether each of the alerts is in all.
func within(some, all map[string]*firing) bool {
	for fp := range some {
		if all[fp] == nil {
			return false
		}
	}
	return true
}

// mute finds what inhibits the alert. As in Alertmanager, an alert that matches both sides does not
// inhibit another such alert.
func (a *alertmanager) mute(f *firing) {
	f.inhibitedBy = nil
	for _, r := range a.rules {
		if !r.target.Matches(f.set) {
			continue
		}
		both := r.source.Matches(f.set)
		for by, source := range r.sources {
			if r.same(f.set, source.set) && (!both || !r.target.Matches(source.set)) {
				f.inhibitedBy = append(f.inhibitedBy, by)
			}
		}
	}
	slices.Sort(f.inhibitedBy)
	f.inhibitedBy = slices.Compact(f.inhibitedBy)
}

// look returns Alertmanager's answer. An answer's map is never changed: a change of alerts makes a
// new map.
func (a *alertmanager) look(now time.Time) []alerts.Replica {
	if a.answer == nil {
		w := &alerts.Replica{URL: "history", Watchdog: true, Alerts: map[string]alerts.Alert{}, Inhibitors: map[string]map[string]string{}}
		for fp, f := range a.active {
			for _, m := range a.blindWhen {
				if name := f.labels[model.AlertNameLabel]; m.Matches(f.set) && (w.BlindBy == "" || name < w.BlindBy) {
					w.BlindBy = name
				}
			}
			if !a.wants(f.labels) {
				continue
			}
			a.mute(f)
			for _, by := range f.inhibitedBy {
				w.Inhibitors[by] = a.active[by].labels
			}
			var silencedBy []string
			if a.silenced[f.on] {
				silencedBy = []string{"recorded"}
			}
			w.Alerts[fp] = alerts.Alert{
				Labels: f.labels, StartsAt: f.startsAt, Active: len(f.inhibitedBy)+len(silencedBy) == 0, InhibitedBy: f.inhibitedBy, SilencedBy: silencedBy,
				Receivers: f.receivers,
			}
		}
		a.answer = w
	}
	w := *a.answer
	w.WatchdogAt = now.Truncate(a.resend)
	return []alerts.Replica{w}
}

// DefaultResend is Prometheus' default interval for sending a firing alert again.
const DefaultResend = time.Minute

// Look implements engine.AlertSource.
func (w *world) Look(context.Context) []alerts.Replica { return w.alerts.look(w.now) }
