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
	// Moments calls yield with each moment in the interval [from, until), in order of time. The first
	// moment has all Nodes and all alerts that existed at from. An error of yield ends the reading,
	// and Moments returns it. The same data give the same moments.
	Moments(ctx context.Context, from, until time.Time, yield func(Moment) error) error
	// Skipped returns the data that Moments could not read or did not use, in order of time. It is
	// complete when Moments has returned.
	Skipped() []Skip
}

// Moment is all changes at one instant. No two moments have the same instant.
type Moment struct {
	At time.Time
	// Nodes are the complete Nodes that appeared or changed, in their state from At on, sorted by
	// name. They are shared with later moments: do not change them.
	Nodes []*corev1.Node
	// Gone are the names of the Nodes that were deleted, sorted.
	Gone []string
	// Alerts are the alerts that began to fire or ended, sorted by their labels.
	Alerts []Alert
	// Silences has the nodes where a silence began or ceased to hold Drydock's repairs.
	Silences []Silence
	// Gap, if not nil, means that there are no data from At until Gap.Until. In this period the state
	// is unknown and nothing can be decided. A gap deletes no Node and ends no alert. The next moment
	// has all changes that happened during the gap.
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

// Silence is the beginning or the end of a silence about a node. In the past, Drydock held a repair
// because of it.
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
