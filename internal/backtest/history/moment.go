// Package history asks a server with the API of Prometheus about the past: which Nodes existed, how
// they changed, and which alerts fired. It returns the answers as a stream of moments, so that a
// month of a large fleet is never in memory as a whole. It makes no repair decisions: the consumer
// of the moments uses the same code that decides live.
//
// It uses only query_range, which every system with PromQL has. The server evaluates the rules'
// expressions. For Nodes, the package queries only changes. If a query exceeds a limit of the
// server, the package queries a shorter period, then fewer nodes per query. If the server still
// gives no answer, the package returns an error or reports a [Skip]. It never treats missing data
// as "nothing happened".
package history

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
)

// Source reads the past of one cluster.
type Source interface {
	// Moments calls yield with each moment of [from, until), in order of time. The first has all
	// Nodes and alerts that existed at from. An error of yield ends the reading and is returned.
	// The same data give the same moments.
	Moments(ctx context.Context, from, until time.Time, yield func(Moment) error) error
	// Skipped returns the data that were not read or used. It is complete when Moments has
	// returned.
	Skipped() []Skip
}

// Moment is all changes at one instant. No two moments have the same instant.
type Moment struct {
	At time.Time
	// Nodes are the complete Nodes that appeared or changed, sorted by name. They are shared with
	// later moments: do not change them.
	Nodes []*corev1.Node
	Gone  []string
	// Alerts that began to fire or ended, sorted by their labels.
	Alerts []Alert
	// Silences has the nodes where a silence began to hold repairs, or ceased to.
	Silences []Silence
	// Gap, if not nil, means that there are no data until Gap.Until, so nothing can be decided. A
	// gap deletes no Node and ends no alert: the next moment has all changes that happened during
	// it.
	Gap *Gap
}

// Alert is an alert as Prometheus sends it to Alertmanager, without its annotations, which decide
// nothing.
type Alert struct {
	Labels   model.LabelSet
	StartsAt time.Time
	EndsAt   time.Time // zero while the alert fires
}

func (a Alert) compare(b Alert) int { return strings.Compare(a.Labels.String(), b.Labels.String()) }

// Silence is the beginning or the end of a silence that held the repairs of a node.
type Silence struct {
	Node  string
	Ended bool
}

// Gap is a time without data.
type Gap struct {
	Until time.Time
	Why   string
}

// Skip is something in the data that was not used.
type Skip struct {
	From, Until time.Time // both zero if it concerns all the time
	What        string    // the metric or rule
	Why         string
}
