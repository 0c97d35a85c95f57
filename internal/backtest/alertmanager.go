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

// alertmanager simulates an Alertmanager that receives the recorded alerts and posts them to
// Drydock. Like a real one, it groups alerts, and applies inhibitions and silences.
type alertmanager struct {
	wants     func(labels map[string]string) bool
	blindWhen []labels.Matchers
	receiver  string
	root      *Route
	resend    time.Duration
	rules     []*inhibition
	// silenced has the names of the nodes whose alerts a recorded silence mutes now.
	silenced map[string]bool

	active map[string]*firing
	groups map[string]*group
	// log has the last post of each group, by the group's key. Like Alertmanager's notification log,
	// it is kept when the group ends.
	log map[string]*posted
	// answer caches the answer to a poll. Each change of an alert or a silence resets it to nil.
	answer *alerts.Replica
}

// inhibition is one inhibition rule, with the firing alerts that match its source.
type inhibition struct {
	*Inhibition
	sources map[string]*firing
}

// firing is an alert that fires at the present simulated time, and what Alertmanager knows about
// it.
type firing struct {
	fingerprint string
	labels      map[string]string
	set         model.LabelSet
	startsAt    time.Time
	inhibitedBy []string
	receivers   []string
	// on is the name of the Node that the alert is about. It is empty if this Node does not exist in
	// the replay.
	on string
}

// group is one of Alertmanager's notification groups: the alerts that a route sends in one post.
type group struct {
	route *Route
	// flush is when Alertmanager next checks whether it must post the group.
	flush time.Time
	// alerts are the firing alerts. ended are the alerts that have ended since the last flush.
	alerts, ended map[string]*firing
}

// posted is one post of a group. fires are the alerts that it reported as firing, over those that
// it reported as resolved.
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

// receives reports whether name is Drydock's receiver. The argument drydock is the configured name,
// and an empty one accepts every receiver. The configured name may have the prefix namespace/name/,
// which the Prometheus operator adds.
func receives(drydock, name string) bool {
	return drydock == "" || name == drydock || strings.HasSuffix(drydock, "/"+name)
}

// begin adds a firing alert, or replaces it if it is already there.
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

// silence begins or ends a silence about a node.
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

// due returns when the next group is flushed, or the zero time if there is no group.
func (a *alertmanager) due() (at time.Time) {
	for _, g := range a.groups {
		at = earliest(at, g.flush)
	}
	return at
}

// post sends the posts of all groups that are due now. It returns true if it sent at least one.
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

// loud returns the alerts that are neither inhibited nor silenced, by fingerprint.
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

// news reports whether Alertmanager would send the post p. last is the group's previous post, or
// nil if there was none. The rule is needsUpdate in notify/dedup_stage.go of Alertmanager 0.34.
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

// within reports whether all contains each alert of some, by its fingerprint.
func within(some, all map[string]*firing) bool {
	for fp := range some {
		if all[fp] == nil {
			return false
		}
	}
	return true
}

// mute sets f.inhibitedBy: the fingerprints of the alerts that inhibit f. If f matches both the
// source and the target of a rule, another alert that also matches both does not inhibit f.
// Alertmanager does the same.
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

// look returns Alertmanager's answer to a poll. The caller may keep the answer: after a change of
// an alert, look returns new maps and does not change the old ones.
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
