package history

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
)

// These metrics of kube-state-metrics describe a Node.
const (
	metricInfo          = "kube_node_info"
	metricCreated       = "kube_node_created"
	metricDeletion      = "kube_node_deletion_timestamp"
	metricLabels        = "kube_node_labels"
	metricRole          = "kube_node_role"
	metricUnschedulable = "kube_node_spec_unschedulable"
	metricTaint         = "kube_node_spec_taint"
	metricCondition     = "kube_node_status_condition"
)

// stateMetrics is a regular expression for the label job of kube-state-metrics. It matches the same
// jobs as the shipped rules.
const stateMetrics = "kube-state-metrics|.+[-/]kube-state-metrics"

// asks is a function that returns a PromQL expression about nodes. by has additional matchers, and
// offset is an offset modifier. Both may be empty.
type asks func(by, offset string) string

// fact is one property of nodes that the backtest reads from a metric.
type fact struct {
	name string
	// whole selects all series. It is queried at the start of the time range, unless it is nil.
	// changes selects the series that differ from those one step before.
	whole, changes asks
	values         bool
	// apply changes the fleet by one event, which is a change of a series. missing gets all series
	// that exist now. It removes from the fleet everything that these series do not show. Both
	// functions return the names of the nodes that they changed.
	apply   func(f *fleet, e event) []string
	missing func(f *fleet, there []series) []string
}

// question makes a query from the expression that the function of returns. nodes has the matchers
// that limit the query to some nodes. The query's name in messages begins with the text what.
func (f *fact) question(of asks, what, nodes string) question {
	return question{name: what + f.name, text: func(by string) string { return of(nodes+by, "") }, splits: true, values: f.values}
}

// selector returns the expression that selects series of a metric of kube-state-metrics.
func (f *fleet) selector(metric string, more ...string) asks {
	all := append([]string{fmt.Sprintf("job=~%q", stateMetrics), `exported_node=""`}, more...)
	for _, m := range f.options.ours() {
		all = append(all, m.String())
	}
	text := metric + "{" + strings.Join(all, ",")
	return func(by, offset string) string { return text + by + "}" + offset }
}

// by returns the expression a, aggregated by the labels. how is the aggregation operator, for
// example max.
func (a asks) by(how string, labels ...string) asks {
	return func(by, offset string) string {
		return how + " by (" + strings.Join(labels, ",") + ") (" + a(by, offset) + ")"
	}
}

// appears returns the expression for series that exist now and did not exist one step before.
func (f *fleet) appears(a asks) asks {
	return func(by, _ string) string { return a(by, "") + " unless " + a(by, f.offset()) }
}

// ends returns the expression for series that existed one step before and do not exist now, for
// nodes that kube-state-metrics still shows.
func (f *fleet) ends(a asks) asks {
	info := f.selector(metricInfo)
	return func(by, _ string) string {
		return "(" + a(by, f.offset()) + " unless " + a(by, "") + ") and on (node) " + info(by, "")
	}
}

func (f *fleet) offset() string { return " offset " + model.Duration(f.options.Step).String() }

// shown returns the query for the number of Nodes that each kube-state-metrics shows.
func (f *fleet) shown() question {
	info := f.selector(metricInfo).by("group", "job", "instance")
	return question{name: metricInfo, text: func(by string) string { return info(by, "") }, splits: true}
}

// plain returns a fact without a value: only whether its series exists matters.
func (f *fleet) plain(name string, of asks, apply func(f *fleet, e event) []string) fact {
	return fact{name: name, whole: of, changes: f.appears(of), apply: apply}
}

// valued returns a fact whose value matters.
func (f *fleet) valued(name string, apply func(n *nodePast, value float64)) fact {
	of := f.selector(name).by("max", "node")
	return fact{
		name: name, whole: of, values: true,
		changes: func(by, _ string) string {
			return of(by, "") + " unless " + of(by, "") + " == " + of(by, f.offset())
		},
		apply: onNode(func(_ *fleet, n *nodePast, e event) { apply(n, e.value) }),
	}
}

// onNode returns an apply function that changes the event's node.
func onNode(change func(f *fleet, n *nodePast, e event)) func(f *fleet, e event) []string {
	return func(f *fleet, e event) []string {
		name := string(e.of["node"])
		if name == "" {
			return nil
		}
		change(f, f.node(name), e)
		return []string{name}
	}
}

// facts returns all facts. Events at the same time are applied in this order.
func (f *fleet) facts() []fact {
	info := f.selector(metricInfo)
	node := f.plain(metricInfo, info.by("group", "node", "provider_id", "system_uuid", "pod_cidr", "internal_ip"), onNode(func(_ *fleet, n *nodePast, e event) {
		n.shown, n.gone, n.info = true, false, e.of
	}))
	node.missing = func(f *fleet, there []series) (out []string) {
		shown := map[model.LabelValue]bool{}
		for _, s := range there {
			shown[s.Labels["node"]] = true
		}
		for name, n := range f.nodes {
			if !shown[model.LabelValue(name)] {
				n.gone = true
				out = append(out, name)
			}
		}
		return out
	}
	labels := append([]string{"node"}, sortedKeys(f.labels)...)
	out := []fact{
		node,
		f.valued(metricCreated, func(n *nodePast, v float64) { n.created = v }),
		f.valued(metricUnschedulable, func(n *nodePast, v float64) { n.cordoned = v == 1 }),
		f.plain(metricDeletion, f.selector(metricDeletion).by("group", "node"), onNode(func(_ *fleet, n *nodePast, e event) { n.deleted = e.at })),
		f.plain(metricLabels, f.selector(metricLabels).by("group", labels...), onNode(func(f *fleet, n *nodePast, e event) {
			n.labels = map[string]string{}
			for of, name := range f.labels {
				if v, is := e.of[model.LabelName(of)]; is {
					n.labels[name] = string(v)
				}
			}
		})),
	}
	out = append(out, f.set(metricRole, f.selector(metricRole).by("group", "node", "role"))...)
	if len(f.options.NodeTaints) > 0 {
		taint := f.selector(metricTaint, fmt.Sprintf("key=~%q", either(f.options.NodeTaints)))
		out = append(out, f.set(metricTaint, taint.by("group", "node", "key", "value", "effect"))...)
	}
	for _, well := range []bool{true, false} {
		if c, some := f.conditions(well); some {
			out = append(out, c)
		}
	}
	gone := info.by("group", "node", "job", "instance")
	return append(out, fact{
		name: metricInfo + " that end",
		changes: func(by, _ string) string {
			return "(" + gone(by, f.offset()) + " unless on (node) " + info(by, "") + ") and on (job, instance) " + info("", "")
		},
		apply: onNode(func(_ *fleet, n *nodePast, _ event) { n.gone = true }),
	})
}

// set returns the facts for a property that a Node may have several times, for example a taint. One
// fact is for values that appear, the other for values that end.
func (f *fleet) set(name string, of asks) []fact {
	there := f.plain(name, of, onNode(func(_ *fleet, n *nodePast, e event) { n.has(name)[e.of.String()] = e.of }))
	there.missing = func(f *fleet, found []series) (out []string) {
		is := map[string]bool{}
		for _, s := range found {
			is[s.Labels.String()] = true
		}
		for _, n := range f.nodes {
			for key := range n.has(name) {
				if !is[key] {
					delete(n.has(name), key)
					out = append(out, n.name)
				}
			}
		}
		return out
	}
	return []fact{there, {
		name: name + " that end", changes: f.ends(of), apply: onNode(func(_ *fleet, n *nodePast, e event) { delete(n.has(name), e.of.String()) }),
	}}
}

// conditions returns the fact for one of two groups of conditions: if wellTrue is set, those whose
// healthy status is True, otherwise those whose healthy status is False. If several
// kube-state-metrics disagree about a status, the healthy one counts, as in the shipped rules. The
// second result is false if the group is empty.
func (f *fleet) conditions(wellTrue bool) (fact, bool) {
	var kinds []string
	if wellTrue {
		kinds = append(kinds, string(corev1.NodeReady))
	}
	for _, kind := range sortedKeys(f.options.NodeConditions) {
		if f.options.NodeConditions[kind] == wellTrue && kind != string(corev1.NodeReady) {
			kinds = append(kinds, kind)
		}
	}
	which := fmt.Sprintf("condition=~%q", either(kinds))
	well := f.selector(metricCondition, which, fmt.Sprintf("status=%q", strconv.FormatBool(wellTrue)))
	ill := f.selector(metricCondition, which, fmt.Sprintf("status!=%q", strconv.FormatBool(wellTrue)))
	const labels = "max by (node,condition,status) ("
	is := func(by, offset string) string {
		w := labels + well(by, offset) + " == 1)"
		return "(" + w + " or (" + labels + ill(by, offset) + " == 1) unless on (node,condition) " + w + "))"
	}
	name := metricCondition + " of " + strings.Join(kinds, ", ")
	return f.plain(name, is, onNode(func(_ *fleet, n *nodePast, e event) {
		n.condition(string(e.of["condition"]), conditionStatus(string(e.of["status"])), e.at)
	})), len(kinds) > 0
}

// either returns a regular expression that matches each of the names.
func either(all []string) string {
	out := make([]string, len(all))
	for i, name := range all {
		out[i] = regexp.QuoteMeta(name)
	}
	return strings.Join(out, "|")
}
