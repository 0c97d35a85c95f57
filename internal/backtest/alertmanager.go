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

// alertmanager stands between the recorded alerts and Drydock: it groups what it posts, and inhibits.
type alertmanager struct {
	wants     func(labels map[string]string) bool
	blindWhen []labels.Matchers
	receiver  string
	root      *Route
	resend    time.Duration
	rules     []*inhibition
	// silenced are the nodes about which there is a silence.
	silenced map[string]bool

	active map[string]*firing
	groups map[string]*group
	// log is what was last posted of each group of which something was said to fire. It outlives the group.
	log map[string]*posted
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
	// on is the node that the alert is about; empty: none that there is.
	on string
}

// group is what one route posts together.
type group struct {
	route *Route
	// flush is when it is posted next, if there is news.
	flush time.Time
	// alerts fire, ended are over since the last flush.
	alerts, ended map[string]*firing
}

// posted is one post: the alerts that it said to fire, and those that it said to be over.
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
		if wait := time.Duration(*r.Wait); g.flush.IsZero() {
			if g.flush = now.Add(wait); f.startsAt.Add(wait).Before(now) {
				g.flush = now // it is old enough
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

// silence takes a silence about a node, or its end.
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

// loud are those of the alerts that nothing inhibits and nobody has silenced.
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

// news says that p is posted after last, which is nil where there was none. It is Alertmanager's rule, needsUpdate in
// notify/dedup_stage.go of version 0.34.
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

// within says that each of the alerts is one of all.
func within(some, all map[string]*firing) bool {
	for fp := range some {
		if all[fp] == nil {
			return false
		}
	}
	return true
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

// DefaultResend is how often Prometheus sends an alert again, by default.
const DefaultResend = time.Minute

// Look implements engine.AlertSource.
func (w *world) Look(context.Context) []alerts.Replica { return w.alerts.look(w.now) }
