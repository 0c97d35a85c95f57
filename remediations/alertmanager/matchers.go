package alertmanager

import (
	"fmt"

	"github.com/prometheus/alertmanager/matcher/compat"
	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
)

type interests struct {
	watchdog  labels.Matchers // nil: the alert is not looked for
	blindWhen []labels.Matchers
	seen      labels.Matchers              // nil: the alert is not looked for
	keep      func(map[string]string) bool // nil: every alert is of interest
	selfTest  func(map[string]string) bool // nil: no alert is the self-test's
	receiver  string                       // empty: mute times are not requested
	nodes     []string                     // labels that name nodes
}

func newInterests(o Options) (interests, error) {
	in := interests{keep: o.Keep, selfTest: o.SelfTest, receiver: o.Receiver, nodes: o.NodeLabels}
	if o.Watchdog != "" {
		m, err := parseMatchers(o.Watchdog, "watchdog")
		if err != nil {
			return interests{}, err
		}
		in.watchdog = m
	}
	if o.SourceSeen != "" {
		m, err := parseMatchers(o.SourceSeen, "SourceSeen")
		if err != nil {
			return interests{}, err
		}
		in.seen = m
	}
	for i, s := range o.BlindWhen {
		m, err := parseMatchers(s, fmt.Sprintf("blindWhen[%d]", i))
		if err != nil {
			return interests{}, err
		}
		in.blindWhen = append(in.blindWhen, m)
	}
	return in, nil
}

// parseMatchers parses like Alertmanager by default: with the new parser, and the classic one as a
// fallback. It refuses an empty set, which would match every alert: as a watchdog it would prove
// nothing, and as blindWhen it would hold all repairs.
func parseMatchers(input, option string) (labels.Matchers, error) {
	parse := compat.FallbackMatchersParser(promslog.NewNopLogger())
	m, err := parse(input, option)
	if err != nil {
		return nil, fmt.Errorf("reading %s: parsing the matchers %q: %w", option, input, err)
	}
	if len(m) == 0 {
		return nil, fmt.Errorf("reading %s: %q has no matcher and would match every alert", option, input)
	}
	return m, nil
}

func (in interests) keeps(ls map[string]string) bool { return in.keep == nil || in.keep(ls) }

// The values of the labels that name a node, in the order of interests.nodes. A missing label has
// an empty value. Nil if the alert has none of them.
func (in interests) nodesOf(ls map[string]string) []string {
	const longest = 253
	var out []string
	for i, label := range in.nodes {
		if node := ls[label]; node != "" && len(node) <= longest {
			if out == nil {
				out = make([]string, len(in.nodes))
			}
			out[i] = node
		}
	}
	return out
}

// The labels that identify an inhibiting alert in messages.
func (in interests) inhibitor(name string, nodes []string) map[string]string {
	out := map[string]string{model.AlertNameLabel: name}
	for i, node := range nodes {
		if node != "" {
			out[in.nodes[i]] = node
		}
	}
	return out
}

func (in interests) isSelfTest(ls map[string]string) bool {
	return in.selfTest != nil && in.selfTest(ls)
}

// blinds reports whether the alert shows that Prometheus does not see the nodes: it matches at
// least one set of blindWhen.
func (in interests) blinds(ls model.LabelSet) bool {
	for _, m := range in.blindWhen {
		if m.Matches(ls) {
			return true
		}
	}
	return false
}

func labelSet(ls map[string]string) model.LabelSet {
	set := make(model.LabelSet, len(ls))
	for name, value := range ls {
		set[model.LabelName(name)] = model.LabelValue(value)
	}
	return set
}
