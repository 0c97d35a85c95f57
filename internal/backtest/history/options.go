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
	// Rules are the rules to evaluate. Empty means the rules that Drydock ships.
	Rules []RuleFile
	// Recorded uses the alerts that Prometheus recorded, and evaluates no rules.
	Recorded bool
	// Matters reports whether an alert with these labels, which are known before the evaluation, is
	// needed. Rules without a needed alert are left out, and Skipped names them. Nil means that
	// every alert is needed.
	Matters func(fixed model.LabelSet) bool
	// ExternalLabels are the external labels of the cluster's Prometheus. A series is read only if
	// it has them all or none of them. Each alert gets these labels.
	ExternalLabels model.LabelSet
	// ReplicaLabel is the external label that differs between the replicas of one Prometheus. It is
	// dropped, because otherwise two replicas would make two alerts. Empty means no label.
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
	// The names of labels, the keys of taints, and the types of conditions to read, each condition
	// with its healthy status. Ready and the roles are always read.
	NodeLabels, NodeTaints []string
	NodeConditions         map[string]bool
	// State is the path of a file that keeps the answers between runs. Empty means no file.
	State string
	// Progress, if not nil, is called with the length of time that has been read so far.
	Progress func(done, all time.Duration)

	// 0 means the default.
	span time.Duration
	// Query all Nodes at each step, also those without changes. Only tests set it.
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

// The matchers leave out the data of other clusters.
func (o *Options) ours() (out []*labels.Matcher) {
	for name, value := range o.ExternalLabels {
		out = append(out, labels.MustNewMatcher(labels.MatchRegexp, string(name), "("+regexp.QuoteMeta(string(value))+")|"))
	}
	return out
}

func (o *Options) has(alert model.LabelSet) bool {
	for name, value := range o.ExternalLabels {
		if alert[name] != value {
			return false
		}
	}
	return true
}
