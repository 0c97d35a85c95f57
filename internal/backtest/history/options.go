package history

import (
	"cmp"
	"regexp"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// Options say what is asked about the past.
type Options struct {
	// Rules are asked about; none: those that Drydock ships.
	Rules []RuleFile
	// Recorded takes the alerts that Prometheus recorded, and asks about no rule.
	Recorded bool
	// Matters says whether anybody asks for an alert of which these labels are known, its name among them, and others are not. A rule
	// whose alerts matter to nobody is left out, and Skipped names it. nil: each alert matters.
	Matters func(fixed model.LabelSet) bool
	// ExternalLabels are those of Prometheus. The data of a store for several clusters has them, and only what has them, or has no such
	// label at all, is asked for. Each alert gets them.
	ExternalLabels model.LabelSet
	// ReplicaLabel is the external label that differs between replicas of one Prometheus. It is dropped from what is answered: two
	// replicas would make two alerts of one. Empty: none is dropped.
	ReplicaLabel string
	// Interval is the evaluation interval of groups that name none; 0: Prometheus' default, one minute.
	Interval time.Duration
	// Step is how finely Nodes, and recorded alerts, are asked about; 0: the shortest evaluation interval.
	Step time.Duration
	// Lookback is how long a series without a new sample is still there, as the server has it; 0: Prometheus' default, five minutes.
	Lookback time.Duration
	// NodeLabels, NodeTaints and NodeConditions are what of Nodes is asked for: the names of labels and conditions, and the keys of
	// taints. A condition is true if its status is well. The condition Ready and the roles are always asked for.
	NodeLabels, NodeTaints []string
	NodeConditions         map[string]bool
	// State is a file that keeps the answers from one run to the next; empty: none does.
	State string
	// Progress, where it is not nil, is called with how much of the time that was asked for has been read: first with nothing, lastly with all.
	Progress func(done, all time.Duration)

	// span is how much is read at once; 0: as much as is usual.
	span time.Duration
	// everyNode asks about all Nodes at each step, also where nothing changed.
	everyNode bool
}

func (o Options) complete() (Options, *rulebook, error) {
	o.Interval = cmp.Or(o.Interval, time.Minute)
	o.Lookback = cmp.Or(o.Lookback, 5*time.Minute)
	o.span = cmp.Or(o.span, 6*time.Hour)
	if o.Recorded {
		o.Step = cmp.Or(o.Step, o.Interval)
		return o, &rulebook{}, nil
	}
	if len(o.Rules) == 0 {
		rules, err := ShippedRules()
		if err != nil {
			return o, nil, err
		}
		o.Rules = rules
	}
	book, err := newRulebook(o)
	if err != nil {
		return o, nil, err
	}
	if o.Step == 0 {
		o.Step = o.Interval
		for _, r := range book.rules {
			o.Step = min(o.Step, r.interval)
		}
	}
	return o, book, nil
}

// ours are the matchers that leave the data of other clusters out.
func (o *Options) ours() (out []*labels.Matcher) {
	for name, value := range o.ExternalLabels {
		out = append(out, labels.MustNewMatcher(labels.MatchRegexp, string(name), "("+regexp.QuoteMeta(string(value))+")|"))
	}
	return out
}

// has says that an alert is one of ours.
func (o *Options) has(alert model.LabelSet) bool {
	for name, value := range o.ExternalLabels {
		if alert[name] != value {
			return false
		}
	}
	return true
}
