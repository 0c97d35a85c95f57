package backtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// fleetDay is a day of a large fleet: one node in a hundred fails, and two zones fail as a whole. A
// reboot cures each.
type fleetDay struct {
	nodes, zones, pools int
	limits              remediations.Limits

	t        testing.TB
	inFlight map[string]*corev1.Node
	busy     map[string]int
	most     int
	// writes are those on Nodes, by minute.
	writes map[int]int
	total  int
	// turns are how much processor time each took, stormy those while a zone is down.
	turns, stormy []time.Duration
}

// zoneFailure is a zone whose nodes are all not Ready for a time.
type zoneFailure struct {
	zone int
	from time.Time
	last time.Duration
}

var zoneFailures = []zoneFailure{{3, at(8, 0), 20 * time.Minute}, {7, at(16, 0), 40 * time.Minute}}

func (d *fleetDay) name(i int) string { return fmt.Sprintf("n%06d", i) }
func (d *fleetDay) zone(i int) string { return "zone-" + strconv.Itoa(i%d.zones) }

func (d *fleetDay) node(i int, ready corev1.ConditionStatus, since time.Time) *corev1.Node {
	n := nodeAt(d.name(i), ready, since)
	n.Labels = map[string]string{d.limits.ZoneLabel: d.zone(i), d.limits.PoolLabels[0]: "pool-" + strconv.Itoa(i/d.zones%d.pools)}
	return n
}

// moments are what the past has of the day.
func (d *fleetDay) moments() []history.Moment {
	p := past{}
	random := rand.New(rand.NewPCG(1, 2))
	ill := map[int]bool{}
	fail := func(i int, from time.Time, last time.Duration) {
		p.at(from).Nodes = append(p.at(from).Nodes, d.node(i, corev1.ConditionUnknown, from))
		to := from.Add(last)
		p.at(to).Nodes = append(p.at(to).Nodes, d.node(i, corev1.ConditionTrue, to))
		a := history.Alert{
			Labels:   model.LabelSet{"alertname": "NodeNotReady", "node": model.LabelValue(d.name(i)), "remediation": "node-not-ready"},
			StartsAt: from.Add(5 * time.Minute),
		}
		p.at(a.StartsAt).Alerts = append(p.at(a.StartsAt).Alerts, a)
		a.EndsAt = to.Add(time.Minute)
		p.at(a.EndsAt).Alerts = append(p.at(a.EndsAt).Alerts, a)
	}
	for i := range d.nodes {
		p.at(midnight).Nodes = append(p.at(midnight).Nodes, d.node(i, corev1.ConditionTrue, midnight.Add(-time.Hour)))
	}
	for range d.nodes / 100 {
		i := random.IntN(d.nodes)
		if failing := slices.ContainsFunc(zoneFailures, func(f zoneFailure) bool {
			return i%d.zones == f.zone
		}); failing || ill[i] {
			i = (i/d.zones)*d.zones + 1 // a node of a zone that does not fail
		}
		if ill[i] {
			continue
		}
		ill[i] = true
		fail(i, midnight.Add(time.Duration(random.IntN(18*60*60))*time.Second), 4*time.Hour)
	}
	for _, f := range zoneFailures {
		for i := f.zone; i < d.nodes; i += d.zones {
			fail(i, f.from, f.last)
		}
	}
	return p.moments()
}

// wrote holds what is in flight against each limit, at each write.
func (d *fleetDay) wrote(r *Replay, after *corev1.Node) {
	d.total++
	d.writes[int(r.now.Sub(midnight)/time.Minute)]++
	was, is := d.inFlight[after.Name] != nil, remediations.Phase(after.Labels[remediations.PhaseLabel]).InFlight()
	if was == is {
		return
	}
	by := 1
	if d.inFlight[after.Name] = after; !is {
		delete(d.inFlight, after.Name)
		by = -1
	}
	l := d.limits
	for _, of := range []struct {
		name string
		most int
	}{
		{"all", l.Concurrent.Value},
		{after.Labels[l.ZoneLabel], l.ConcurrentPerZone.Value},
		{after.Labels[l.PoolLabels[0]], l.ConcurrentPerPool.Value},
	} {
		d.busy[of.name] += by
		require.LessOrEqual(d.t, d.busy[of.name], of.most, "%s at %s", of.name, r.now)
	}
	d.most = max(d.most, len(d.inFlight))
}

func processorTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// run replays the day, and requires that no limit is ever exceeded, that nothing is begun in a zone
// that is down, and that each repair ends.
func (d *fleetDay) run(o Options) *Replay {
	o.Curing = true
	o.Config.Limits, o.Config.Windows = d.limits, nil
	d.inFlight, d.busy, d.writes = map[string]*corev1.Node{}, map[string]int{}, map[int]int{}
	moments := d.moments()
	r := New(o, midnight)
	r.wrote = func(_, after *corev1.Node) { d.wrote(r, after) }
	last := processorTime()
	r.turned = func() {
		now := processorTime()
		took := now - last
		last = now
		d.turns = append(d.turns, took)
		if slices.ContainsFunc(zoneFailures, func(f zoneFailure) bool {
			return r.now.After(f.from.Add(5*time.Minute)) && r.now.Before(f.from.Add(f.last))
		}) {
			d.stormy = append(d.stormy, took)
		}
	}
	for _, m := range moments {
		require.NoError(d.t, r.Feed(d.t.Context(), m))
	}
	require.NoError(d.t, r.Until(d.t.Context(), at(24, 0)))
	r.Finish(at(24, 0))

	require.Empty(d.t, d.inFlight)
	for name, n := range r.node {
		require.Empty(d.t, n.now.Labels[remediations.PhaseLabel], name)
		require.NotContains(d.t, n.now.Annotations, remediations.NodeRepairKey, name)
	}
	l, err := ledger.Decode(r.ledger)
	require.NoError(d.t, err)
	require.Empty(d.t, l.Slots)
	require.Empty(d.t, l.Status.Breakers)
	acted := 0
	for _, one := range r.story.repairs {
		require.False(d.t, one.Over.IsZero(), "%s of %s goes on", one.ID, one.Node)
		for _, s := range one.Steps {
			acted++
			for _, f := range zoneFailures {
				down := r.node[one.Node].now.Labels[d.limits.ZoneLabel] == "zone-"+strconv.Itoa(f.zone)
				require.False(d.t, down && s.At.After(f.from.Add(time.Minute)) && s.At.Before(f.from.Add(f.last)), "%s in a zone that is down", one.ID)
			}
		}
	}
	require.GreaterOrEqual(d.t, acted, d.nodes/100*9/10, "most faults are repaired")
	require.Equal(d.t, d.limits.Concurrent.Value, d.most, "the limit is reached")
	require.Len(d.t, r.story.openings, len(zoneFailures), "each zone's breaker opens once")
	return r
}

func dayOf(t testing.TB, nodes int) *fleetDay {
	d := &fleetDay{nodes: nodes, zones: 10, pools: 50, t: t, limits: optionsOf(t, dayConfig).Config.Limits}
	for of, most := range map[*remediations.Quantity]int{
		&d.limits.Concurrent: max(2, nodes/10_000), &d.limits.ConcurrentPerZone: max(1, nodes/30_000), &d.limits.ConcurrentPerPool: 1,
	} {
		*of = remediations.Quantity{Value: most}
	}
	return d
}

// TestADayOfALargeFleet is BenchmarkScale with fewer nodes.
func TestADayOfALargeFleet(t *testing.T) {
	t.Parallel()
	dayOf(t, 2000).run(optionsOf(t, dayConfig))
}

// BenchmarkScale is the day of 100,000 nodes. It does not measure the API server, the network or
// the cache's decoding: Nodes are in memory behind the engine's ports. One process runs all of it,
// including the world around it, and its processor time and memory are printed.
func BenchmarkScale(b *testing.B) {
	for b.Loop() {
		d := dayOf(b, 100_000)
		r := d.run(optionsOf(b, dayConfig))
		b.ReportMetric(float64(d.most), "most-at-once")
		b.ReportMetric(float64(r.answer("").Totals.Acted), "repairs")
		for name, turns := range map[string][]time.Duration{"turn": d.turns, "stormy-turn": d.stormy} {
			slices.Sort(turns)
			b.ReportMetric(turns[len(turns)/2].Seconds()*1000, "ms/"+name)
			b.ReportMetric(turns[len(turns)*99/100].Seconds()*1000, "ms/p99-"+name)
		}
		b.ReportMetric(float64(len(d.turns)), "turns")
		most := 0
		for _, n := range d.writes {
			most = max(most, n)
		}
		b.ReportMetric(float64(d.total)/86400, "node-writes/s")
		b.ReportMetric(float64(most)/60, "node-writes/s-in-the-busiest-minute")
		b.ReportMetric(float64(r.ledgerAt)/86400, "ledger-writes/s")
		b.ReportMetric(processorTime().Seconds(), "processor-s")
		b.ReportMetric(peak(b), "MB-peak")
		runtime.GC()
		var heap runtime.MemStats
		runtime.ReadMemStats(&heap)
		b.ReportMetric(float64(heap.HeapAlloc)/1e6, "MB-in-use-at-the-end")
		runtime.KeepAlive(r)
	}
}

// peak is the most memory that this process has had resident, in MB.
func peak(t testing.TB) float64 {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	kb, err := strconv.ParseFloat(regexp.MustCompile(`VmHWM:\s+(\d+)`).FindStringSubmatch(string(status))[1], 64)
	require.NoError(t, err)
	return kb / 1000
}
