package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// stormLimit is how many repairs may be under way at the same time in the tests' configuration.
const stormLimit = 3

// stormCooldown is how long the breaker stays open after the share of unhealthy nodes has fallen.
const stormCooldown = 3 * time.Second

// The policy's `for` is longer than kube-controller-manager needs to find all lost nodes. So the
// breaker knows the whole storm before the first node may be repaired.
func stormy() map[string]any {
	c := config(policy(map[string]any{"for": "20s"}))
	c["limits"] = map[string]any{"concurrent": stormLimit, "concurrentPerZone": stormLimit, "unhealthy": "20%", "stormCooldown": stormCooldown.String()}
	return c
}

// Half of all nodes are lost at the same time, and nothing is done. Then most come back. One node
// is repaired first, and after it the others, never more at a time than the limit, until all are
// cured.
func TestHalfOfTheFleetIsLost(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{Config: stormy()})
	most := y.watchFleet()

	var lost []string
	for i := 0; i < fleet; i += 2 {
		lost = append(lost, fmt.Sprintf("node-%d", i))
	}
	y.lose(lost...)
	y.received(lost...)
	y.ledger("the breaker holds everything", func(l *ledger.Ledger) bool {
		return l.Status.Breakers[ledger.ScopeCluster].State == ledger.BreakerOpen && l.Status.Holds[remediations.ReasonFleetUnhealthy] != ""
	})
	require.Empty(t, y.civo.CallsTo(civosim.HardReboots), "no side effect at all")

	// The control: all but six nodes come back, 15% of each of their zones, and those six are
	// repaired.
	left := lost[:6]
	y.restore(lost[6:]...)
	y.ledger("one node is tried", func(l *ledger.Ledger) bool {
		return l.Status.Breakers[ledger.ScopeCluster].State == ledger.BreakerHalfOpen || len(l.Slots) > 0
	})
	for _, n := range left {
		e := y.ended(n)
		require.Equal(t, remediations.OutcomeRecovered, e.Outcome, "%s: %s", n, e.Why)
	}
	require.Len(t, y.civo.Done(civosim.HardReboots), len(left))
	require.LessOrEqual(t, most(), stormLimit)
	require.Positive(t, most(), "the watch saw them at all")
}

// A twentieth of all nodes is lost, which is below the breaker's share. They are cured, several at
// a time and never more than the limit.
func TestATwentiethOfTheFleetIsLost(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{Config: stormy()})
	most := y.watchFleet()
	var lost []string
	for i := range fleet / 20 {
		lost = append(lost, fmt.Sprintf("node-%d", 60+i))
	}
	y.lose(lost...)
	for _, n := range lost {
		e := y.ended(n)
		require.Equal(t, remediations.OutcomeRecovered, e.Outcome, "%s: %s", n, e.Why)
	}
	require.Len(t, y.civo.Done(civosim.HardReboots), len(lost))
	require.LessOrEqual(t, most(), stormLimit)
	require.Greater(t, most(), 1, "the limit is what bounds them, not the loop")
}

// Half of a zone is lost, an eighth of the fleet. The zone is left alone, and a node of another
// zone is repaired. If more nodes than limits.unhealthy were lost, nothing would be repaired.
func TestHalfOfAZoneIsLost(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{Config: stormy()})
	var zone []string
	for i := 1; i < fleet/2; i += zones {
		zone = append(zone, fmt.Sprintf("node-%d", i))
	}
	y.lose(zone...)
	y.received(zone...)
	y.ledger("the zone's breaker is open, and no other", func(l *ledger.Ledger) bool {
		return l.Status.Breakers["zone/zone-1"].State == ledger.BreakerOpen && len(l.Status.Breakers) == 1
	})

	y.fail("node-2")
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-2").Outcome)
	require.Len(t, y.civo.Done(civosim.HardReboots), 1, "the node of the other zone, and nothing in the lost one")
}

// S3-14: all nodes of the fleet are down at the same time. Drydock makes no call at all.
func TestTheWholeFleetIsDown(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{Config: stormy()})
	var all []string
	for i := range fleet {
		all = append(all, fmt.Sprintf("node-%d", i))
	}
	y.lose(all...)
	y.received(all[:40]...)
	y.ledger("everything is held", func(l *ledger.Ledger) bool {
		return l.Status.Blind != "" || l.Status.Breakers[ledger.ScopeCluster].State == ledger.BreakerOpen
	})
	require.Empty(t, y.civo.Calls(), "not even a question")
	// The control: all but one come back, and that one is repaired.
	y.restore(all[:40]...)
	y.restore(all[41:]...)
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-40").Outcome)
}

// lastingDiskFull is like diskFull, but one slow scrape does not end it. That would look like the
// end of the storm.
const lastingDiskFull = `groups:
- name: disk-full
  rules:
  - alert: DiskFull
    expr: max_over_time(kube_node_status_condition{condition="DiskPressure",status="true"}[4s]) == 1
    for: 5s
    keep_firing_for: 5s
    labels: {remediation: disk-full}
`

// The Alertmanagers die during the storm. The breaker keeps its count: that no alert is known does
// not show that the nodes are healthy.
func TestTheAlertmanagersDieInAStorm(t *testing.T) {
	// A restarted Alertmanager may learn of its alerts seconds after the Watchdog, and until then
	// everything looks healthy. That must not last as long as the cooldown.
	const cooldown, longer = 15 * time.Second, 20 * time.Second
	y := newYard(t)
	require.NoError(t, y.lab.LoadRules(t.Context(), "disk-full", []byte(lastingDiskFull)))
	c := stormy()
	c["limits"].(map[string]any)["stormCooldown"] = cooldown.String()
	c["policies"] = []any{diskPressure(map[string]any{"for": "15s"})}
	y.run(lab.DrydockOptions{Config: c})
	t.Cleanup(y.startAlertmanagers)
	var full []string
	for i := range fleet / 4 {
		full = append(full, fmt.Sprintf("node-%d", i))
	}
	y.fillAll(full...)
	y.received(full...)
	open := func(l *ledger.Ledger) bool {
		return l.Status.Breakers[ledger.ScopeCluster].State == ledger.BreakerOpen
	}
	y.ledger("the breaker holds everything", open)

	for i := range 2 {
		y.lab.StopAlertmanager(i)
	}
	y.ledger("Drydock says that it is blind", func(l *ledger.Ledger) bool { return l.Status.Blind != "" })
	y.ledgerStays("the breaker is open", longer, open)
	y.startAlertmanagers()
	y.ledger("Drydock trusts its sources", func(l *ledger.Ledger) bool { return l.Status.Blind == "" })
	y.ledgerStays("the breaker is open", longer, open)
	require.Empty(t, y.civo.CallsTo(civosim.HardReboots), "no side effect at all")

	// The Alertmanagers die once more, and all but four nodes become healthy unseen. The
	// Alertmanagers come back with four alerts of twenty. The cooldown begins when Drydock sees
	// that.
	left := full[:4]
	for i := range 2 {
		y.lab.StopAlertmanager(i)
	}
	y.ledger("Drydock says that it is blind", func(l *ledger.Ledger) bool { return l.Status.Blind != "" })
	y.restore(full[4:]...)
	y.ledgerStays("the breaker is open", longer, open)
	y.startAlertmanagers()
	var seen, tried time.Time
	y.ledger("Drydock trusts its sources", func(l *ledger.Ledger) bool {
		seen = l.Status.Breakers[ledger.ScopeCluster].Seen
		return l.Status.Blind == ""
	})
	y.ledger("one node is tried", func(l *ledger.Ledger) bool {
		b := l.Status.Breakers[ledger.ScopeCluster]
		tried = b.Since
		return b.State == ledger.BreakerHalfOpen
	})
	require.GreaterOrEqual(t, tried.Sub(seen), cooldown-time.Second, "times in the ledger are cut to seconds")
	// The control: these four are repaired.
	for _, n := range left {
		e := y.ended(n)
		require.Equal(t, remediations.OutcomeRecovered, e.Outcome, "%s: %s", n, e.Why)
	}
	require.Len(t, y.civo.Done(civosim.HardReboots), len(left))
}

// ledgerStays checks that the ledger stays as wanted for that long.
func (y *yard) ledgerStays(what string, long time.Duration, wanted func(*ledger.Ledger) bool) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), long)
	defer cancel()
	w, err := y.lab.Client().CoreV1().ConfigMaps(lab.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=drydock-ledger"})
	require.NoError(y.t, err)
	defer w.Stop()
	for e := range w.ResultChan() {
		cm, ok := e.Object.(*corev1.ConfigMap)
		if !ok {
			continue
		}
		l, err := ledger.Decode(cm.Data)
		require.NoError(y.t, err)
		require.True(y.t, wanted(l), "%s no more: %v", what, cm.Data)
	}
}

// fillAll makes the kubelets of the nodes report that their disks are full, until the test ends.
func (y *yard) fillAll(nodes ...string) {
	y.t.Helper()
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() {
			if err := y.lab.SetCondition(y.t.Context(), n, corev1.NodeDiskPressure, corev1.ConditionTrue, "KubeletHasDiskPressure"); err != nil {
				y.t.Errorf("filling %s: %v", n, err)
			}
		})
	}
	wg.Wait()
	y.t.Cleanup(func() { y.restore(nodes...) })
}

// lose breaks the nodes' kubelets, and heals them when the test ends.
func (y *yard) lose(nodes ...string) {
	y.t.Helper()
	for _, n := range nodes {
		y.lab.Break(n)
	}
	y.t.Cleanup(func() { y.restore(nodes...) })
}

func (y *yard) restore(nodes ...string) {
	y.t.Helper()
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16)
	for _, n := range nodes {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := y.lab.Heal(context.WithoutCancel(y.t.Context()), n, ""); err != nil {
				y.t.Errorf("bringing %s back: %v", n, err)
			}
		})
	}
	wg.Wait()
}

// received waits until every node has an alert.
func (y *yard) received(nodes ...string) {
	y.t.Helper()
	for _, n := range nodes {
		y.await(n, "its alert on it", func(n *corev1.Node) bool { return len(remediations.AlertsOn(n.Annotations)) > 0 })
	}
}

// ledger waits until the ledger is as wanted.
func (y *yard) ledger(what string, wanted func(*ledger.Ledger) bool) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), lab.Patience)
	defer cancel()
	last := "nothing"
	for ctx.Err() == nil { // a watch that has ended begins again with the present state
		w, err := y.lab.Client().CoreV1().ConfigMaps(lab.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=drydock-ledger"})
		if err != nil && ctx.Err() != nil {
			break
		}
		require.NoError(y.t, err)
		for e := range w.ResultChan() {
			cm, ok := e.Object.(*corev1.ConfigMap)
			if !ok {
				continue
			}
			last = fmt.Sprint(cm.Data)
			l, err := ledger.Decode(cm.Data)
			require.NoError(y.t, err)
			if wanted(l) {
				w.Stop()
				return
			}
		}
	}
	y.t.Fatalf("waiting for the ledger: %s; it has %s", what, last)
}

// watchFleet counts, at every change of any node, how many nodes are under repair. It returns the
// largest number so far.
func (y *yard) watchFleet() (most func() int) {
	y.t.Helper()
	w, err := y.lab.Client().CoreV1().Nodes().Watch(y.t.Context(), metav1.ListOptions{LabelSelector: remediations.PhaseLabel})
	require.NoError(y.t, err)
	y.t.Cleanup(w.Stop)
	var mu sync.Mutex
	count := 0
	go func() {
		flying := map[string]bool{}
		for e := range w.ResultChan() {
			n, ok := e.Object.(*corev1.Node)
			if !ok {
				continue
			}
			flying[n.Name] = e.Type != watch.Deleted && remediations.Phase(n.Labels[remediations.PhaseLabel]).InFlight()
			now := 0
			for _, f := range flying {
				if f {
					now++
				}
			}
			mu.Lock()
			count = max(count, now)
			mu.Unlock()
		}
	}()
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}
