package alertmanager

import (
	"fmt"

	"github.com/prometheus/alertmanager/matcher/compat"
	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
)

// interests select the relevant parts of an answer.
type interests struct {
	watchdog  labels.Matchers // nil: not looked for
	blindWhen []labels.Matchers
	seen      labels.Matchers              // nil: not looked for
	keep      func(map[string]string) bool // nil: all
	selfTest  func(map[string]string) bool // nil: not looked for
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

// parseMatchers parses as Alertmanager does by default: with its new parser, and the classic one as
// a fallback. An empty set would match every alert, so it is refused: as a watchdog it would prove
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

// keeps reports whether an alert is of interest.
func (in interests) keeps(ls map[string]string) bool { return in.keep == nil || in.keep(ls) }

// nodesOf returns the values of the labels that name a node, in the order of interests.nodes; nil:
// the alert has none of them.
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

// inhibitor returns the labels that identify an inhibiting alert for people: its name, and the
// labels that name a node.
func (in interests) inhibitor(name string, nodes []string) map[string]string {
	out := map[string]string{model.AlertNameLabel: name}
	for i, node := range nodes {
		if node != "" {
			out[in.nodes[i]] = node
		}
	}
	return out
}

// isSelfTest reports whether an alert is the self-test's.
func (in interests) isSelfTest(ls map[string]string) bool {
	return in.selfTest != nil && in.selfTest(ls)
}

// blinds reports whether one set of blindWhen matches.
func (in interests) blinds(ls model.LabelSet) bool {
	for _, m := range in.blindWhen {
		if m.Matches(ls) {
			return true
		}
	}
	return false
}

// labelSet is the form that matchers and fingerprints need.
func labelSet(ls map[string]string) model.LabelSet {
	set := make(model.LabelSet, len(ls))
	for name, value := range ls {
		set[model.LabelName(name)] = model.LabelValue(value)
	}
	return set
}
