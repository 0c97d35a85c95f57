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
	// Days are the days when the window begins; empty: every day.
	Days []time.Weekday
	// From and To are times of day on the wall clock of Location, to the minute; To is not part of
	// the window.
	From, To WallTime
	Location *time.Location
}

// WallTime is a time of day as a clock on the wall shows it.
type WallTime struct{ Hour, Minute int }

func (w WallTime) minutes() int { return w.Hour*60 + w.Minute }

// Contains reports whether the window is open at t. It compares wall-clock times: an hour that
// daylight saving skips does not exist, and an hour that it repeats is open twice.
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

// nextOpening returns when the next window opens after t, to the minute. It returns zero if no
// window opens within eight days.
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

// InWindow reports whether disruptive repairs may begin now. next is the next opening if they may
// not.
func (c *Config) InWindow(now time.Time) (open bool, next time.Time) {
	if len(c.Windows) == 0 || slices.ContainsFunc(c.Windows, func(w Window) bool { return w.Contains(now) }) {
		return true, time.Time{}
	}
	return false, nextOpening(c.Windows, now)
}

// Limits bound the disruptive repairs.
type Limits struct {
	Concurrent, ConcurrentPerZone, ConcurrentPerPool Quantity
	PoolLabels                                       []string
	ZoneLabel                                        string
	// Unhealthy is the share of nodes beyond which the breaker opens.
	Unhealthy Quantity
	// RepairsPerNode is how many disruptive repairs may begin on one machine within RepairsWindow.
	RepairsPerNode int
	RepairsWindow  time.Duration
	// StormCooldown is how long the fleet must have been well before an open breaker closes.
	StormCooldown time.Duration
	// CommonCause is how many nodes with the same new alert about a condition, within a time, count
	// as one fault.
	CommonCause CommonCause
	// StartupGrace is the age below which a node is not repaired and not counted.
	StartupGrace time.Duration
	// Sidecars is how many sidecars may be under repair at once in the cluster. No other limit
	// applies to them.
	Sidecars int
	// Locations bound the moves of mesh leaders. No other limit applies to those moves.
	Locations LocationLimits
}

// CommonCause is a number of nodes and a time. With zero nodes no alerts count as one fault.
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

// Words returns the limits as configured, by their keys. The labels are part of them because the
// plugin and the page do not read the configuration, and need the labels to find a node's zone and
// pool.
func (l Limits) Words() map[string]string {
	return map[string]string{
		"concurrent": l.Concurrent.String(), "concurrentPerZone": l.ConcurrentPerZone.String(),
		"concurrentPerPool": l.ConcurrentPerPool.String(), "unhealthy": l.Unhealthy.String(), "stormCooldown": l.StormCooldown.String(), "startupGrace": l.StartupGrace.String(),
		"zoneLabel": l.ZoneLabel, "poolLabels": strings.Join(l.PoolLabels, ","),
	}
}

// Quantity is a number of nodes, or a percentage of them.
type Quantity struct {
	Value   int
	Percent bool
}

// Of returns how many of total the quantity allows at once. A percentage is rounded down, but never
// to zero: a limit of zero would stop repairs without a message.
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

// Exceeded reports whether count of total is more than the quantity.
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

// ClusterWide bounds when Drydock may take a step that changes the whole cluster: at least this
// number of nodes, and this share of all nodes, must have the fault.
type ClusterWide struct {
	MinNodes int
	MinShare Quantity
}

// Reached reports whether count of total is at least the quantity.
func (q Quantity) Reached(count, total int) bool {
	if !q.Percent {
		return count >= q.Value
	}
	return count*100 >= total*q.Value
}

// Zone returns the node's zone, by the configuration's limits.
func (c *Config) Zone(n *corev1.Node) string { return c.Limits.Zone(n) }

// Pool returns the node's pool, by the configuration's limits.
func (c *Config) Pool(n *corev1.Node) string { return c.Limits.Pool(n) }

// Zone returns the value of the node's zone label; empty: the node has none, and no zone limit
// applies.
func (l Limits) Zone(n *corev1.Node) string { return n.Labels[l.ZoneLabel] }

// Pool returns the value of the first pool label that the node has; empty: no pool limit applies.
func (l Limits) Pool(n *corev1.Node) string {
	for _, label := range l.PoolLabels {
		if v := n.Labels[label]; v != "" {
			return v
		}
	}
	return ""
}
