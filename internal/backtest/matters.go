package backtest

import (
	"slices"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/common/model"

	"drydock.dev/drydock/remediations"
)

// Matters returns a function that reports whether an alert may change a decision, if only some of
// its labels are known. It may if a policy matches it, if it inhibits other alerts or makes Drydock
// blind (blindWhen), or if Alertmanager posts it together with other alerts.
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

// The first alert of a group decides when the group is posted. So an alert that may share a group
// with others matters.
func (o *Options) mayShareAPost(r *Route, fixed model.LabelSet) bool {
	if !mayMatch(r.matchers, fixed) {
		return false
	}
	if slices.ContainsFunc(r.Routes, func(below *Route) bool { return o.mayShareAPost(below, fixed) }) {
		return true
	}
	return receives(o.Config.Receiver, r.Receiver) && !slices.Contains(r.GroupBy, model.AlertNameLabel) && !slices.Contains(r.GroupBy, allLabels)
}

// The alert may have further labels, which are not known yet.
func mayMatch(all labels.Matchers, fixed model.LabelSet) bool {
	return !slices.ContainsFunc(all, func(m *labels.Matcher) bool {
		v, known := fixed[model.LabelName(m.Name)]
		return known && !m.Matches(string(v))
	})
}
