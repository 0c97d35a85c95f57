package history

import (
	"cmp"
	"regexp"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// Options select what is read from the past.
type Options struct {
	// Rules are the rules to evaluate. If it is empty, these are the rules that Drydock ships.
	Rules []RuleFile
	// Recorded uses the alerts that Prometheus recorded, and evaluates no rules.
	Recorded bool
	// Matters reports whether an alert with these labels (its name and others that are known before
	// the evaluation) is needed. A rule without needed alerts is left out, and Skipped names it. If
	// Matters is nil, every alert is needed.
	Matters func(fixed model.LabelSet) bool
	// ExternalLabels are the external labels of the cluster's Prometheus. In a store for several
	// clusters, the series have external labels. A series is read only if it has these labels, or if
	// it lacks them all. Each alert gets these labels.
	ExternalLabels model.LabelSet
	// ReplicaLabel is the external label that differs between the replicas of one Prometheus. It is
	// dropped from the answers, because otherwise two replicas would make two alerts. If it is empty,
	// no label is dropped.
	ReplicaLabel string
	// Interval is the evaluation interval of rule groups that do not set one. 0 means Prometheus'
	// default, one minute.
	Interval time.Duration
	// Step is the interval at which Nodes and recorded alerts are read. 0 means the shortest
	// evaluation interval.
	Step time.Duration
	// Lookback is the server's lookback: how long a series exists after its last sample. 0 means
	// Prometheus' default, five minutes.
	Lookback time.Duration
	// NodeLabels, NodeTaints and NodeConditions are the parts of Nodes to read: names of labels, keys
	// of taints, and types of conditions. The value in NodeConditions is the healthy status of the
	// condition. The condition Ready and the roles are always read.
	NodeLabels, NodeTaints []string
	NodeConditions         map[string]bool
	// State is the path of a file that keeps the answers between runs. If it is empty, there is no
	// such file.
	State string
	// Progress, if not nil, is called with the length of time that was read so far, from zero to all.
	Progress func(done, all time.Duration)

	// span is the length of the periods that are read one after the other. 0 means the default.
	span time.Duration
	// everyNode makes the history query all Nodes at each step, also those without changes. Only tests
	// set it.
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
		rules, err := shippedRules()
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

// ours returns the matchers that leave out the data of other clusters.
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
