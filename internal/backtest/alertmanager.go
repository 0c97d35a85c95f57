package backtest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/common/model"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// alertmanager stands between the recorded alerts and Drydock: it groups what it posts, and inhibits.
type alertmanager struct {
	wants     func(labels map[string]string) bool
	blindWhen []labels.Matchers
	receiver  string
	root      *Route
	rules     []*inhibition

	active map[string]*firing
	groups map[string]*group
	// answer is what it says while no alert changes; nil: it is to be made.
	answer *alerts.Replica
}

// inhibition is one rule, with the alerts that fire and match its source side.
type inhibition struct {
	*Inhibition
	sources map[string]*firing
}

// firing is one alert that fires.
type firing struct {
	fingerprint string
	labels      map[string]string
	set         model.LabelSet
	startsAt    time.Time
	inhibitedBy []string
	receivers   []string
}

// group is what one route posts together.
type group struct {
	route *Route
	// flush is when it is posted next, if there is news; notified is when it last was.
	flush, notified time.Time
	// alerts fire, ended are over since the last flush, posted were said to fire.
	alerts, ended map[string]*firing
	posted        map[string]bool
}

func newAlertmanager(c *Routing, core *remediations.Config, blindWhen []labels.Matchers) *alertmanager {
	a := &alertmanager{
		wants: core.Wants, blindWhen: blindWhen, receiver: core.Receiver, root: c.Route,
		active: map[string]*firing{}, groups: map[string]*group{},
	}
	for _, r := range c.Inhibit {
		a.rules = append(a.rules, &inhibition{r, map[string]*firing{}})
	}
	return a
}

// receives says that a route's receiver is Drydock's. The operator writes namespace/name/ before the name of one.
func receives(drydock, name string) bool {
	return drydock == "" || name == drydock || strings.HasSuffix(drydock, "/"+name)
}

// begin takes an alert that fires, again or anew.
func (a *alertmanager) begin(f *firing, now time.Time) {
	a.answer = nil
	for _, r := range a.root.of(f.set) {
		if !receives(a.receiver, r.Receiver) {
			continue
		}
		f.receivers = []string{a.receiver}
		g := a.groupOf(r, f.set)
		if g.flush.IsZero() {
			g.flush = later(now, f.startsAt.Add(time.Duration(*r.Wait)))
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

// end takes the end of an alert.
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

func (a *alertmanager) groupOf(r *Route, set model.LabelSet) *group {
	key := r.group(set)
	g := a.groups[key]
	if g == nil {
		g = &group{route: r, alerts: map[string]*firing{}, posted: map[string]bool{}, ended: map[string]*firing{}}
		a.groups[key] = g
	}
	return g
}

// due is when the next group is flushed; zero: there is none.
func (a *alertmanager) due() (at time.Time) {
	for _, g := range a.groups {
		at = earliest(at, g.flush)
	}
	return at
}

// post gives what is posted now, group by group.
func (a *alertmanager) post(now time.Time, send func(f *firing, status string)) (any bool) {
	for _, key := range slices.Sorted(maps.Keys(a.groups)) {
		g := a.groups[key]
		if g.flush.After(now) {
			continue
		}
		if g.news(now, a) {
			g.notified, any = now, true
			for _, fp := range slices.Sorted(maps.Keys(g.alerts)) {
				if a.mute(g.alerts[fp]); len(g.alerts[fp].inhibitedBy) == 0 {
					g.posted[fp] = true
					send(g.alerts[fp], remediations.StatusFiring)
				}
			}
			for _, fp := range slices.Sorted(maps.Keys(g.ended)) {
				send(g.ended[fp], remediations.StatusResolved)
				delete(g.posted, fp)
			}
		}
		clear(g.ended)
		if g.flush = now.Add(time.Duration(*g.route.Interval)); len(g.alerts) == 0 {
			delete(a.groups, key)
		}
	}
	return any
}

// news says that the group has something that was not posted, or that it is time to repeat it.
func (g *group) news(now time.Time, a *alertmanager) bool {
	for fp, f := range g.alerts {
		if a.mute(f); len(f.inhibitedBy) == 0 && !g.posted[fp] {
			return true
		}
	}
	for fp := range g.ended {
		if g.posted[fp] {
			return true
		}
	}
	return len(g.posted) > 0 && now.Sub(g.notified) >= time.Duration(*g.route.Repeat)
}

// mute finds out what inhibits the alert: Alertmanager's rule, where an alert that both sides match inhibits no other such one.
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

// look is Alertmanager's answer. Its map of alerts is not changed when alerts change: it is made anew.
func (a *alertmanager) look(now time.Time) []alerts.Replica {
	if a.answer == nil {
		w := &alerts.Replica{URL: "history", Watchdog: true, Alerts: map[string]alerts.Alert{}, Inhibitors: map[string]string{}}
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
				w.Inhibitors[by] = a.active[by].labels[model.AlertNameLabel]
			}
			w.Alerts[fp] = alerts.Alert{
				Labels: f.labels, StartsAt: f.startsAt, Active: len(f.inhibitedBy) == 0, InhibitedBy: f.inhibitedBy, Receivers: f.receivers,
			}
		}
		a.answer = w
	}
	w := *a.answer
	w.WatchdogAt = now.Truncate(resendAfter)
	return []alerts.Replica{w}
}

// resendAfter is how often Prometheus sends an alert again, by default: so often comes the Watchdog.
const resendAfter = time.Minute

// Look implements engine.AlertSource.
func (w *world) Look(context.Context) []alerts.Replica { return w.alerts.look(w.now) }
