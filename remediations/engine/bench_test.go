package engine

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/node"
)

// still is a world where nothing happens: a fleet with some alerts, which all wait behind one
// repair.
type still struct {
	nodes  []*corev1.Node
	byName map[string]int
	ledger map[string]string
	at     int
	words  []alerts.Replica
	// changed are the Nodes written since the last call of Changed.
	changed []*corev1.Node
	// stale is how many leases have not been renewed for an hour.
	stale int
}

// newStill creates a fleet as the cache holds it. Its first nodes have a firing alert.
func newStill(c *remediations.Config, nodes, firing int) *still {
	w := &still{byName: map[string]int{}, words: []alerts.Replica{{URL: "http://am:9093", Watchdog: true, WatchdogAt: time.Now(), Alerts: map[string]alerts.Alert{}}}}
	began := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		labels := map[string]string{
			c.Limits.ZoneLabel: fmt.Sprintf("zone-%d", i%3), c.Limits.PoolLabels[0]: fmt.Sprintf("pool-%d", i%5), corev1.LabelHostname: name,
		}
		for k := len(labels); k < 20; k++ {
			labels[fmt.Sprintf("feature.example.com/cpu-%d", k)] = "true"
		}
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", ResourceVersion: "1", Labels: labels, CreationTimestamp: metav1.NewTime(began)},
			Spec:       corev1.NodeSpec{ProviderID: "civo://" + name},
			Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: "boot-" + name}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}
		if i < firing {
			about := map[string]string{"alertname": "NodeNotReady", "node": name, "remediation": "node-not-ready", "severity": "critical"}
			a := c.NewAlert(c.Policies[0], about, remediations.StatusFiring, began, began)
			n.Annotations = map[string]string{a.Key(): a.Encode()}
			w.words[0].Alerts[a.Fingerprint] = alerts.Alert{Labels: about, StartsAt: began, Active: true}
		}
		w.byName[name] = i
		w.nodes = append(w.nodes, n)
	}
	return w
}

func (w *still) Nodes(context.Context) ([]*corev1.Node, error) { return w.nodes, nil }

func (w *still) Changed(context.Context) (changed []*corev1.Node, _ []string, _ bool) {
	changed, w.changed = w.changed, nil
	return changed, nil, true
}

func (w *still) Node(_ context.Context, name string) (*corev1.Node, error) {
	return w.nodes[w.byName[name]], nil
}
func (w *still) Lease(context.Context, string) (time.Time, time.Duration, error) {
	return time.Now(), time.Minute, nil
}
func (w *still) Leases(ctx context.Context, _ []string) (map[string]signs.Lease, error) {
	return w.Heartbeats(ctx)
}
func (w *still) Heartbeats(context.Context) (map[string]signs.Lease, error) {
	out := make(map[string]signs.Lease, len(w.nodes))
	for i, n := range w.nodes {
		l := signs.Lease{ReadAt: time.Now(), RenewedAt: time.Now(), Duration: time.Minute}
		if i < w.stale {
			l.RenewedAt = l.ReadAt.Add(-time.Hour)
		}
		out[n.Name] = l
	}
	return out, nil
}

func (w *still) Write(_ context.Context, n *corev1.Node, c NodeChange) (*corev1.Node, error) {
	out := n.DeepCopy()
	for _, m := range []struct {
		of      *map[string]string
		changes map[string]*string
	}{{&out.Annotations, c.Annotations}, {&out.Labels, c.Labels}} {
		if *m.of == nil {
			*m.of = map[string]string{}
		}
		for k, v := range m.changes {
			if delete(*m.of, k); v != nil {
				(*m.of)[k] = *v
			}
		}
	}
	w.at++
	out.ResourceVersion = strconv.Itoa(w.at + 1)
	w.nodes[w.byName[n.Name]] = out
	w.changed = append(w.changed, out)
	return out, nil
}
func (w *still) annotate(ctx context.Context, n *corev1.Node, annotations map[string]*string) error {
	_, err := w.Write(ctx, n, NodeChange{Annotations: annotations})
	return err
}
func (w *still) OwnsCordon(context.Context, string) (bool, error)                    { return false, nil }
func (w *still) OwnsAnnotations(context.Context, string, []string) ([]string, error) { return nil, nil }
func (w *still) SetBy(context.Context, string, string) (string, time.Time, error) {
	return "", time.Time{}, nil
}

func (w *still) Load(context.Context) (map[string]string, string, error) {
	if w.ledger == nil {
		return nil, "", ErrNotFound
	}
	return maps.Clone(w.ledger), "1", nil
}

func (w *still) Save(_ context.Context, data map[string]string, _ string) (string, error) {
	w.ledger = maps.Clone(data)
	return "1", nil
}

func (w *still) Look(context.Context) []alerts.Replica { return w.words }
func (w *still) Event(string, Event)                   {}

func (w *still) Act(ctx context.Context, _ Machine, _ func() error) (remediations.CallOutcome, error) {
	<-ctx.Done() // the one repair stays under way as long as the measurement runs
	return remediations.CallUnknown, ctx.Err()
}

// settled returns an engine over such a fleet that has nothing left to write.
func settled(t testing.TB, nodes, alerts int) (*Engine, context.Context) {
	t.Helper()
	c := modelConfig()
	c.Policies[0].For = 0
	c.Limits.Unhealthy = remediations.Quantity{Value: 50, Percent: true}
	c.Limits.StartupGrace = time.Minute
	w := newStill(c, nodes, alerts)
	e := New(Options{
		Config: c, Fleet: w, Writer: w, Store: w, Alerts: w, Actuators: map[string]map[string]Actuator{"": {"reboot": w}}, Events: w,
		Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{}, Log: logr.Discard(), PollInterval: time.Hour, CallTimeout: time.Hour,
		NewID: func() string { return "r0000" }, Adopt: intake.Intake{Writer: intake.Direct(w.annotate), Now: time.Now}.Adopt,
	})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	for range 4 {
		e.lookFrom = time.Time{} // as if it had rested
		e.look(ctx)
		e.received(ctx, <-e.looked)
		e.pass(ctx)
	}
	return e, ctx
}

// BenchmarkPass is one decision over the whole fleet: which nodes to repair, and what holds the
// others.
func BenchmarkPass(b *testing.B) {
	for _, fleet := range []struct{ nodes, alerts int }{{1000, 0}, {5000, 0}, {1000, 100}, {5000, 500}} {
		b.Run(fmt.Sprintf("nodes=%d/alerts=%d", fleet.nodes, fleet.alerts), func(b *testing.B) {
			e, ctx := settled(b, fleet.nodes, fleet.alerts)
			b.ReportAllocs()
			for b.Loop() {
				e.pass(ctx)
			}
		})
	}
}

// storming is an engine whose nodes all have an alert and are not Ready, so that the breaker is
// open. beat is a heartbeat of that many nodes, poll a poll of Alertmanager with the next pass.
func storming(t testing.TB, nodes int) (e *Engine, w *still, beat func(nodes int), poll func()) {
	e, ctx := settled(t, nodes, nodes)
	w, _ = e.Fleet.(*still)
	beat = func(nodes int) {
		for i := range nodes {
			n := *w.nodes[i]
			w.at++
			n.ResourceVersion = strconv.Itoa(w.at + 1)
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
			w.nodes[i] = &n
			w.changed = append(w.changed, &n)
		}
	}
	poll = func() {
		e.lookFrom = time.Time{} // as if it had rested
		e.poll(ctx)
		e.received(ctx, <-e.looked)
		e.pass(ctx)
	}
	beat(nodes)
	for fp, a := range w.words[0].Alerts {
		a.Receivers = []string{e.Config.Receiver}
		w.words[0].Alerts[fp] = a
	}
	for range 4 {
		poll()
	}
	return e, w, beat, poll
}

// BenchmarkStandingStorm is one poll of Alertmanager while every node has an alert and the breaker
// is open. Since the last poll nothing has changed except the heartbeats of a few nodes.
func BenchmarkStandingStorm(b *testing.B) {
	e, _, beat, poll := storming(b, 5000)
	b.ReportAllocs()
	for b.Loop() {
		beat(750) // the number between two polls, at 50 a second
		poll()
	}
	require.Equal(b, ledger.BreakerOpen, e.ledger.Status.Breakers[ledger.ScopeCluster].State)
}

// TestADecisionStandsUntilAlertmanagerSaysOtherwise: a decision is used again until Alertmanager's
// answer about its alert changes. A changed answer about one alert has no effect on the decisions
// about other nodes.
func TestADecisionStandsUntilAlertmanagerSaysOtherwise(t *testing.T) {
	const nodes = 20
	e, w, beat, poll := storming(t, nodes)
	stood, reasons := 0, map[string]remediations.Reason{}
	e.core.stood = func(*lifecycle.State, lifecycle.Decision, time.Time) { stood++ }
	e.Decided = func(node string, d lifecycle.Decision) { reasons[node] = d.Reason }
	poll()
	require.Equal(t, nodes, stood, "the control")
	for fp, a := range w.words[0].Alerts {
		if a.Labels["node"] == "node-3" {
			a.Active, a.SilencedBy = false, []string{"s1"}
			w.words[0].Alerts[fp] = a
		}
	}
	stood = 0
	poll()
	require.Equal(t, nodes-1, stood)
	require.Equal(t, remediations.ReasonSilenced, reasons["node-3"])
	require.Equal(t, remediations.ReasonFleetUnhealthy, reasons["node-4"])
	stood = 0
	beat(2)
	poll()
	require.Equal(t, nodes-1, stood, "a heartbeat changes nothing")
	n := *w.nodes[5]
	w.at++
	n.ResourceVersion, n.Labels = strconv.Itoa(w.at+1), maps.Clone(n.Labels)
	n.Labels["new"] = ""
	w.nodes[5], w.changed = &n, append(w.changed, &n)
	stood = 0
	poll()
	require.Equal(t, nodes-2, stood, "a node that changed is decided about again")
	poll()
	require.Equal(t, 2*nodes-3, stood, "and then that stands")
}

// TestADecisionByTimesFromTheFutureDoesNotStand: the times on a Node are corrected as soon as most
// leases agree with this clock. At that moment, neither the Node nor its alert may change.
func TestADecisionByTimesFromTheFutureDoesNotStand(t *testing.T) {
	for name, ended := range map[string]time.Duration{"a month ahead": 30 * 24 * time.Hour, "a day ago, the control": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const nodes = 20
				e, w, _, poll := storming(t, nodes)
				stood, reasons := map[string]int{}, map[string]remediations.Reason{}
				e.core.stood = func(s *lifecycle.State, _ lifecycle.Decision, _ time.Time) { stood[s.Node.Name]++ }
				e.Decided = func(node string, d lifecycle.Decision) { reasons[node] = d.Reason }
				w.stale = nodes / 2 // too few for blindness, too many to trust this clock
				at := remediations.Instant(time.Now().Add(ended))
				n := w.nodes[3].DeepCopy()
				w.at++
				n.ResourceVersion = strconv.Itoa(w.at + 1)
				n.Annotations[remediations.HistoryKey] = remediations.EncodeHistory(nil, remediations.Entry{
					ID: "r1", Policy: "another", Began: at, Ended: at, Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{{Name: "drain", Number: 1}},
				})
				w.nodes[3], w.changed = n, append(w.changed, n)
				time.Sleep(remediations.LookFor + time.Second)
				poll()
				require.Equal(t, remediations.ReasonFleetUnhealthy, reasons[n.Name])
				clear(stood)
				poll()
				require.Equal(t, remediations.ReasonFleetUnhealthy, reasons[n.Name])
				require.Equal(t, 1, stood["node-4"], "the control: the decision about a node without such times stands")
				require.Equal(t, ended < 0, stood[n.Name] == 1)
				w.stale = 0
				time.Sleep(remediations.LookFor + time.Second)
				poll()
				history := remediations.DecodeHistory(w.nodes[3].Annotations[remediations.HistoryKey])
				require.False(t, history[0].Ended.After(time.Now()), "%s", history[0].Ended)
				time.Sleep(2 * time.Hour) // the one repair's call ends
			})
		})
	}
}

// TestADecisionStandsWhileTheStormMoves: a changed count of the breaker only changes the message of
// a decision, unless a step depends on how many nodes have the fault.
func TestADecisionStandsWhileTheStormMoves(t *testing.T) {
	const nodes = 20
	for name, c := range map[string]struct {
		plan  []remediations.Step
		moved int
	}{
		"a reboot":                          {[]remediations.Step{{Name: "reboot", Attempts: 1}}, nodes - 1},
		"a step that changes all, after it": {[]remediations.Step{{Name: "reboot", Attempts: 1}, {Name: "rollout-restart", Attempts: 1}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, w, _, poll := storming(t, nodes)
				e.Config.Policies[0].Plan = c.plan
				stood, says := 0, ""
				e.core.stood = func(s *lifecycle.State, d lifecycle.Decision, now time.Time) {
					require.Equal(t, node.Decide(s, now), d, "as if it had been made again")
					stood, says = stood+1, d.Message
				}
				time.Sleep(standsFor)
				poll() // each decision is made again
				stood = 0
				poll()
				require.Equal(t, nodes, stood, "the control")
				require.Contains(t, says, "20 of 20")
				n := *w.nodes[3]
				w.at++
				n.ResourceVersion, n.Annotations = strconv.Itoa(w.at+1), nil
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
				w.nodes[3], w.changed = &n, append(w.changed, &n)
				maps.DeleteFunc(w.words[0].Alerts, func(_ string, a alerts.Alert) bool { return a.Labels["node"] == n.Name })
				stood = 0
				poll()
				require.Equal(t, c.moved, stood)
				if c.moved > 0 {
					require.Contains(t, says, "19 of 20")
				}
				time.Sleep(2 * time.Hour) // the one repair's call ends
			})
		})
	}
}

// TestLooksLeaveRoomInAStorm: each alert of a storm requests a query of Alertmanager. With few
// alerts the next query follows at once. In a storm it follows after a rest, and no request is
// lost.
func TestLooksLeaveRoomInAStorm(t *testing.T) {
	for alerts, rest := range map[int]time.Duration{10: 0, 1000: 200 * time.Millisecond, 8000: longestLookRest} {
		t.Run(fmt.Sprint(alerts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := settled(t, alerts, alerts)
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- e.Start(ctx) }()
				time.Sleep(2 * longestLookRest)
				e.News()
				synctest.Wait()
				require.Equal(t, time.Now(), e.word.AskedAt, "after a rest a look begins at once")
				e.News()
				synctest.Wait()
				asked := time.Now()
				time.Sleep(rest)
				synctest.Wait()
				require.Equal(t, asked.Add(rest), e.word.AskedAt)
				stop()
				require.NoError(t, <-ended)
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// TestPassAllocatesNothingForHealthyNodes: a pass over five times as many healthy nodes allocates
// no more.
func TestPassAllocatesNothingForHealthyNodes(t *testing.T) {
	const passes = 50
	cost := func(nodes int) (allocations, bytes float64) {
		e, ctx := settled(t, nodes, 10)
		allocations = testing.AllocsPerRun(passes, func() { e.pass(ctx) })
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range passes {
			e.pass(ctx)
		}
		runtime.ReadMemStats(&after)
		return allocations, float64(after.TotalAlloc-before.TotalAlloc) / passes
	}
	few, fewBytes := cost(1000)
	many, manyBytes := cost(5000)
	require.InDelta(t, few, many, 20)
	require.InDelta(t, fewBytes, manyBytes, 8<<10)
}
