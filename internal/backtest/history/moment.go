// Package history asks a server with the API of Prometheus what was: which Nodes there were and how they changed, and which alerts fired.
// It gives both as a stream of moments, so that a month of a large fleet is never in memory at once. It decides nothing: who
// consumes the moments asks the same code that decides live.
//
// Only query_range is asked: each system that answers PromQL has it. The server evaluates the rules' expressions. Of Nodes it is asked
// for what changed alone. A limit of the server is met by shorter times, then by fewer nodes at once; what it still does not answer is an
// error or is named, and never counts as if nothing had been there.
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
	// Moments calls yield with each moment from from (included) until until (excluded), in order of time. The first moment
	// has all Nodes and all alerts that there were at from. An error of yield ends the reading, and is returned. The same
	// data gives the same moments.
	Moments(ctx context.Context, from, until time.Time, yield func(Moment) error) error
	// Skipped is what Moments could not read, or could not believe, in order of time. It is complete when Moments has returned.
	Skipped() []Skip
}

// Moment is all that changed at one instant. No two moments have the same instant.
type Moment struct {
	At time.Time
	// Nodes are the Nodes that appeared or changed, whole, as they are from At on, sorted by name. They are shared with
	// later moments: do not change them.
	Nodes []*corev1.Node
	// Gone are the names of the Nodes that were deleted, sorted.
	Gone []string
	// Alerts are the alerts that began to fire or ended, sorted by their labels.
	Alerts []Alert
	// Silences are the nodes whose repairs began or ceased to be held because of a silence.
	Silences []Silence
	// Gap says, where it is not nil, that the data ends at At and begins again at Gap.Until. What was known at At is no
	// longer known, and nothing can be decided. A gap deletes no Node and ends no alert: the first moment after it says what
	// has changed meanwhile.
	Gap *Gap
}

// Alert is an alert as Prometheus sends it to Alertmanager, but for its annotations: they decide nothing.
type Alert struct {
	Labels   model.LabelSet
	StartsAt time.Time
	EndsAt   time.Time // zero while the alert fires
}

func (a Alert) compare(b Alert) int { return strings.Compare(a.Labels.String(), b.Labels.String()) }

// Silence is a silence about a node that Drydock, which ran then, held a repair for.
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
	From, Until time.Time // both zero where it concerns all the time
	What        string    // the metric or rule
	Why         string
}
