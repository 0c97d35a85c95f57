package remediations

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	corev1 "k8s.io/api/core/v1"
)

// Window is a weekly time when disruptive repairs may begin. If From is later than To, the window
// crosses midnight and belongs to the day of its beginning.
type Window struct {
	// When the window begins. An empty list means every day.
	Days []time.Weekday
	// From and To are times of day in Location, to the minute. The window ends before To. If From
	// and To are equal, the window is open all day.
	From, To WallTime
	Location *time.Location
}

// WallTime is a local time of day, without a date and a time zone.
type WallTime struct{ Hour, Minute int }

func (w WallTime) minutes() int { return w.Hour*60 + w.Minute }

// Contains reports whether the window is open at t, by local time of day. When clocks are set back,
// the window is open in both of the repeated hours.
func (w Window) Contains(t time.Time) bool {
	local := t.In(w.Location)
	at, from, to := local.Hour()*60+local.Minute(), w.From.minutes(), w.To.minutes()
	today := local.Weekday()
	yesterday := (today + 6) % 7
	switch {
	case from == to:
		return w.on(today)
	case from < to:
		return w.on(today) && at >= from && at < to
	default:
		return (w.on(today) && at >= from) || (w.on(yesterday) && at < to)
	}
}

func (w Window) on(d time.Weekday) bool { return len(w.Days) == 0 || slices.Contains(w.Days, d) }

// nextOpening is exact to the minute. It returns zero if no window opens within eight days.
func nextOpening(windows []Window, t time.Time) time.Time {
	const step = time.Minute
	for at := t.Truncate(step).Add(step); at.Before(t.Add(8 * 24 * time.Hour)); at = at.Add(step) {
		for _, w := range windows {
			if w.Contains(at) {
				return at
			}
		}
	}
	return time.Time{}
}

// InWindow reports whether disruptive repairs may begin now and, if not, when the next window
// opens.
func (c *Config) InWindow(now time.Time) (open bool, next time.Time) {
	if len(c.Windows) == 0 || slices.ContainsFunc(c.Windows, func(w Window) bool { return w.Contains(now) }) {
		return true, time.Time{}
	}
	return false, nextOpening(c.Windows, now)
}

// Limits bound the disruptive repairs.
type Limits struct {
	// How many nodes may be under repair at the same time: in the cluster, in each zone and in each
	// pool.
	Concurrent, ConcurrentPerZone, ConcurrentPerPool Quantity
	// The first label that a Node has counts.
	PoolLabels []string
	ZoneLabel  string
	// If more nodes are unhealthy, the breaker opens, and no disruptive repair begins.
	Unhealthy Quantity
	// The disruptive repairs that may begin on one machine within RepairsWindow.
	RepairsPerNode int
	RepairsWindow  time.Duration
	// How long the number of unhealthy nodes must stay within the limit before an open breaker
	// allows one disruptive repair.
	StormCooldown time.Duration
	// When the same alert on several nodes counts as one fault.
	CommonCause CommonCause
	// A younger node is neither repaired nor counted.
	StartupGrace time.Duration
	// How many sidecars may be under repair at the same time. No other limit applies to them.
	Sidecars int
	// Limits the moves of a mesh location's leadership. No other limit applies to them.
	Locations LocationLimits
}

// CommonCause is how many nodes must get the same alert within a time to count as one fault. Zero
// nodes means never.
type CommonCause struct {
	Nodes  int
	Within time.Duration
}

func (c CommonCause) String() string {
	if c.Nodes == 0 {
		return "off"
	}
	return fmt.Sprintf("%d nodes within %s", c.Nodes, text.Duration(c.Within))
}

// Words returns the limits as text, and the labels of a node's zone and pool, by their keys in the
// configuration. The ledger stores them, because the plugin and its web page cannot read the
// configuration.
func (l Limits) Words() map[string]string {
	return map[string]string{
		"concurrent": l.Concurrent.String(), "concurrentPerZone": l.ConcurrentPerZone.String(),
		"concurrentPerPool": l.ConcurrentPerPool.String(), "unhealthy": l.Unhealthy.String(), "stormCooldown": l.StormCooldown.String(), "startupGrace": l.StartupGrace.String(),
		"zoneLabel": l.ZoneLabel, "poolLabels": strings.Join(l.PoolLabels, ","),
	}
}

// Quantity is a number of nodes, or a percentage of all nodes.
type Quantity struct {
	Value   int
	Percent bool
}

// Of returns how many of total nodes the quantity allows. A percentage is rounded down, but not to
// zero, because that would silently stop all repairs in a small cluster.
func (q Quantity) Of(total int) int {
	if !q.Percent {
		return q.Value
	}
	n := int(math.Floor(float64(total) * float64(q.Value) / 100))
	if n == 0 && q.Value > 0 {
		return 1
	}
	return n
}

// Exceeded reports whether count of total nodes is more than the quantity.
func (q Quantity) Exceeded(count, total int) bool {
	if !q.Percent {
		return count > q.Value
	}
	return count*100 > total*q.Value
}

func (q Quantity) String() string {
	if q.Percent {
		return fmt.Sprintf("%d%%", q.Value)
	}
	return fmt.Sprintf("%d", q.Value)
}

// ClusterWide is how many nodes, and which share of all, must have the fault before a step changes
// the whole cluster.
type ClusterWide struct {
	MinNodes int
	MinShare Quantity
}

// Reached reports whether count of total nodes is at least the quantity.
func (q Quantity) Reached(count, total int) bool {
	if !q.Percent {
		return count >= q.Value
	}
	return count*100 >= total*q.Value
}

// Zone returns the node's zone, by the zone label in the configuration's limits.
func (c *Config) Zone(n *corev1.Node) string { return c.Limits.Zone(n) }

// Pool returns the node's pool, by the pool labels in the configuration's limits.
func (c *Config) Pool(n *corev1.Node) string { return c.Limits.Pool(n) }

// Zone returns the node's zone. "" means that no limit of zones applies.
func (l Limits) Zone(n *corev1.Node) string { return n.Labels[l.ZoneLabel] }

// Pool returns the value of the first pool label that the node has. "" means that no limit of pools
// applies.
func (l Limits) Pool(n *corev1.Node) string {
	for _, label := range l.PoolLabels {
		if v := n.Labels[label]; v != "" {
			return v
		}
	}
	return ""
}
