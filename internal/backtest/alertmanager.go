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

// alertmanager groups, inhibits and silences the recorded alerts as a real Alertmanager does.
type alertmanager struct {
	wants     func(labels map[string]string) bool
	blindWhen []labels.Matchers
	receiver  string
	root      *Route
	resend    time.Duration
	rules     []*inhibition
	silenced  map[string]bool

	active map[string]*firing
	groups map[string]*group
	// The last post of each group. Alertmanager's notification log, too, is kept when a group ends.
	log map[string]*posted
	// Each change of an alert or a silence resets the cached answer to nil.
	answer *alerts.Replica
}

type inhibition struct {
	*Inhibition
	sources map[string]*firing
}

type firing struct {
	fingerprint string
	labels      map[string]string
	set         model.LabelSet
	startsAt    time.Time
	inhibitedBy []string
	receivers   []string
	// Empty if the node does not exist in the replay.
	on string
}

type group struct {
	route         *Route
	flush         time.Time
	alerts, ended map[string]*firing
}

// fires has the alerts that the post reported as firing, over the resolved ones.
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

// The Prometheus operator puts namespace/name/ before the name of a receiver. An empty drydock
// accepts every receiver.
func receives(drydock, name string) bool {
	return drydock == "" || name == drydock || strings.HasSuffix(drydock, "/"+name)
}

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
				g.flush = now // the alert began more than group_wait ago
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

// due returns the zero time if there is no group.
func (a *alertmanager) due() (at time.Time) {
	for _, g := range a.groups {
		at = earliest(at, g.flush)
	}
	return at
}

func (a *alertmanager) post(now time.Time, send func(f *firing, status string)) (any bool) {
	for _, key := range slices.Sorted(maps.Keys(a.groups)) {
		g := a.groups[key]
		if g.flush.After(now) {
			continue
		}
		p := &posted{now, a.loud(g.alerts), a.loud(g.ended)}
		if p.news(a.log[key], time.Duration(*g.route.Repeat)) {
			if any, a.log[key] = true, p; len(p.fires) == 0 {
				delete(a.log, key) // the next post of this group is then a first post
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

// Source: needsUpdate in notify/dedup_stage.go of Alertmanager 0.34.
func (p *posted) news(last *posted, repeat time.Duration) bool {
	if len(p.fires)+len(p.over) == 0 {
		return false
	}
	if last != nil && p.at.Sub(last.at) >= 2*repeat {
		last = nil // Alertmanager's notification log has dropped the last post
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

func within(some, all map[string]*firing) bool {
	for fp := range some {
		if all[fp] == nil {
			return false
		}
	}
	return true
}

// As in Alertmanager, an alert that matches both the source and the target of a rule is not
// inhibited by another one that also matches both.
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

// The caller may keep the answer: a later call returns new maps.
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
