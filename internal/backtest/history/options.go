package history

import (
	"cmp"
	"regexp"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// Options configure what is read of the past.
type Options struct {
	// Rules are evaluated. None: the rules that Drydock ships.
	Rules []RuleFile
	// Recorded uses the alerts that Prometheus recorded, and evaluates no rules.
	Recorded bool
	// Matters reports whether an alert with these known labels, including its name, is needed. A
	// rule with only unneeded alerts is left out, and Skipped names it. Nil: every alert is needed.
	Matters func(fixed model.LabelSet) bool
	// ExternalLabels are the external labels of Prometheus. A store for several clusters has them
	// on its data. Only series with these labels, or without such labels at all, are read. Each
	// alert gets these labels.
	ExternalLabels model.LabelSet
	// ReplicaLabel is the external label that differs between replicas of one Prometheus. It is
	// dropped from the answers: otherwise, two replicas would give two alerts. Empty: no label is
	// dropped.
	ReplicaLabel string
	// Interval is the evaluation interval of groups without one; 0: Prometheus' default, one
	// minute.
	Interval time.Duration
	// Step is the resolution for Nodes and recorded alerts; 0: the shortest evaluation interval.
	Step time.Duration
	// Lookback is how long a series exists after its last sample, as configured in the server; 0:
	// Prometheus' default, five minutes.
	Lookback time.Duration
	// NodeLabels, NodeTaints and NodeConditions are the parts of Nodes that are read: names of
	// labels and conditions, and keys of taints. The value of a condition is true if its status
	// True is healthy. The condition Ready and the roles are always read.
	NodeLabels, NodeTaints []string
	NodeConditions         map[string]bool
	// State is a file that keeps the answers between runs. Empty: there is none.
	State string
	// Progress, if not nil, is called with the time that has been read so far: first zero, last
	// all.
	Progress func(done, all time.Duration)

	// span is how much is read at once; 0: the default.
	span time.Duration
	// everyNode queries all Nodes at each step, even without changes.
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

// ours returns the matchers that exclude the data of other clusters.
func (o *Options) ours() (out []*labels.Matcher) {
	for name, value := range o.ExternalLabels {
		out = append(out, labels.MustNewMatcher(labels.MatchRegexp, string(name), "("+regexp.QuoteMeta(string(value))+")|"))
	}
	return out
}

// has reports whether an alert belongs to this cluster.
func (o *Options) has(alert model.LabelSet) bool {
	for name, value := range o.ExternalLabels {
		if alert[name] != value {
			return false
		}
	}
	return true
}
