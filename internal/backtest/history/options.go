package history

import (
	"cmp"
	"time"

	"github.com/prometheus/common/model"
)

// Options say how the past is read.
type Options struct {
	// Rules are evaluated over the past; none: those that Drydock ships.
	Rules []RuleFile
	// Recorded takes the alerts that Prometheus recorded, and evaluates nothing.
	Recorded bool
	// Matters says whether anybody asks for an alert of which these labels are known, its name among them, and others are not. A rule
	// whose alerts matter to nobody is left out, and Skipped names it. nil: each alert matters.
	Matters func(fixed model.LabelSet) bool
	// ExternalLabels are those of Prometheus, which its data does not have: each alert gets them.
	ExternalLabels model.LabelSet
	// ReplicaLabel is the external label that differs between replicas of one Prometheus. It is dropped from what Prometheus answers: two
	// replicas behind one Service would make two series of each, and two alerts of one. Empty: none is dropped.
	ReplicaLabel string
	// Interval is the evaluation interval of groups that name none; 0: Prometheus' default, one minute.
	Interval time.Duration
	// Lookback is how long a series without a new sample is still there; 0: Prometheus' default, five minutes.
	Lookback time.Duration
	// NodeLabels are the names of labels of Nodes. kube-state-metrics changes each character that is not a letter, digit or _
	// of a name to _, and only names that are known can be changed back. Those of Kubernetes and of providers are known.
	NodeLabels []string
	// Progress, where it is not nil, is called with how much of the time that was asked for has been read: first with nothing, lastly with all.
	Progress func(done, all time.Duration)
}

func (o Options) complete() (Options, *rulebook, error) {
	o.Interval = cmp.Or(o.Interval, time.Minute)
	o.Lookback = cmp.Or(o.Lookback, 5*time.Minute)
	if o.Recorded {
		return o, &rulebook{}, nil
	}
	if len(o.Rules) == 0 {
		rules, err := ShippedRules()
		if err != nil {
			return o, nil, err
		}
		o.Rules = rules
	}
	book, err := newRulebook(o.Rules, o.Matters)
	return o, book, err
}
