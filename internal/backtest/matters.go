package backtest

import (
	"slices"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/common/model"

	"drydock.dev/drydock/remediations"
)

// Matters returns a function that reports whether an alert may change a decision in any of the
// configurations. Its argument fixed has only some of the alert's labels. An alert matters if a
// policy matches it, or if it inhibits other alerts. It also matters if it makes Drydock blind
// (blindWhen), or if Alertmanager posts it together with other alerts.
func Matters(configs []Named) func(fixed model.LabelSet) bool {
	return func(fixed model.LabelSet) bool {
		return slices.ContainsFunc(configs, func(c Named) bool { return c.asksFor(fixed) })
	}
}

func (o *Options) asksFor(fixed model.LabelSet) bool {
	return slices.ContainsFunc(o.Config.Policies, func(p *remediations.Policy) bool {
		return p.Mode != remediations.ModeOff && o.Config.Serves(p) && mayMatch(p.Match, fixed)
	}) || slices.ContainsFunc(o.BlindWhen, func(m labels.Matchers) bool {
		return mayMatch(m, fixed)
	}) || slices.ContainsFunc(o.Alertmanager.Inhibit, func(i *Inhibition) bool {
		return mayMatch(i.source, fixed)
	}) || o.mayShareAPost(o.Alertmanager.Route, fixed)
}

// mayShareAPost reports whether a route to Drydock may group the alert with alerts of another name.
// Then the alert matters, because the first alert of a group decides when the group is posted.
func (o *Options) mayShareAPost(r *Route, fixed model.LabelSet) bool {
	if !mayMatch(r.matchers, fixed) {
		return false
	}
	if slices.ContainsFunc(r.Routes, func(below *Route) bool { return o.mayShareAPost(below, fixed) }) {
		return true
	}
	return receives(o.Config.Receiver, r.Receiver) && !slices.Contains(r.GroupBy, model.AlertNameLabel) && !slices.Contains(r.GroupBy, allLabels)
}

// mayMatch reports whether all matchers could match an alert with these labels. The alert may have
// further labels, which are not known yet.
func mayMatch(all labels.Matchers, fixed model.LabelSet) bool {
	return !slices.ContainsFunc(all, func(m *labels.Matcher) bool {
		v, known := fixed[model.LabelName(m.Name)]
		return known && !m.Matches(string(v))
	})
}
