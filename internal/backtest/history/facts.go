package history

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
)

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

// The same jobs as in the shipped rules.
const stateMetrics = "kube-state-metrics|.+[-/]kube-state-metrics"

type asks func(by, offset string) string

type fact struct {
	name string
	// whole selects all series, at the start of the time range. changes selects those that differ
	// from one step before.
	whole, changes asks
	values         bool
	// apply changes the fleet by one event. missing gets all series that exist now and removes
	// everything else from the fleet. Both return the nodes that they changed.
	apply   func(f *fleet, e event) []string
	missing func(f *fleet, there []series) []string
}

func (f *fact) question(of asks, what, nodes string) question {
	return question{name: what + f.name, text: func(by string) string { return of(nodes+by, "") }, splits: true, values: f.values}
}

func (f *fleet) selector(metric string, more ...string) asks {
	all := append([]string{fmt.Sprintf("job=~%q", stateMetrics), `exported_node=""`}, more...)
	for _, m := range f.options.ours() {
		all = append(all, m.String())
	}
	text := metric + "{" + strings.Join(all, ",")
	return func(by, offset string) string { return text + by + "}" + offset }
}

func (a asks) by(how string, labels ...string) asks {
	return func(by, offset string) string {
		return how + " by (" + strings.Join(labels, ",") + ") (" + a(by, offset) + ")"
	}
}

func (f *fleet) appears(a asks) asks {
	return func(by, _ string) string { return a(by, "") + " unless " + a(by, f.offset()) }
}

// A series counts as ended only while kube-state-metrics still shows its node.
func (f *fleet) ends(a asks) asks {
	info := f.selector(metricInfo)
	return func(by, _ string) string {
		return "(" + a(by, f.offset()) + " unless " + a(by, "") + ") and on (node) " + info(by, "")
	}
}

func (f *fleet) offset() string { return " offset " + model.Duration(f.options.Step).String() }

func (f *fleet) shown() question {
	info := f.selector(metricInfo).by("group", "job", "instance")
	return question{name: metricInfo, text: func(by string) string { return info(by, "") }, splits: true}
}

// Only whether the series exists matters, not its value.
func (f *fleet) plain(name string, of asks, apply func(f *fleet, e event) []string) fact {
	return fact{name: name, whole: of, changes: f.appears(of), apply: apply}
}

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

// Events at the same time are applied in the order of the facts.
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

// A Node may have several taints, for example. One fact is for those that appear, the other for
// those that end.
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

// The conditions are those whose healthy status is True, or with wellTrue=false those whose healthy
// status is False. If several kube-state-metrics disagree, the healthy status counts, as in the
// shipped rules. The second result is false if there are none.
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

func either(all []string) string {
	out := make([]string, len(all))
	for i, name := range all {
		out[i] = regexp.QuoteMeta(name)
	}
	return strings.Join(out, "|")
}
