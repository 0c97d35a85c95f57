package history_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

// quiet are rules that never fire.
const quiet = "groups: [{name: quiet, rules: [{alert: Never, expr: 'kube_node_info == 2'}]}]"

func names(nodes []*corev1.Node) (out []string) {
	for _, node := range nodes {
		out = append(out, node.Name)
	}
	return out
}

func ready(node *corev1.Node) (corev1.ConditionStatus, time.Time) {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status, condition.LastTransitionTime.UTC()
		}
	}
	return "", time.Time{}
}

func TestANodeIsWhatKubeStateMetricsShowed(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(0, 30, func(when time.Time, _ float64) {
		r.Scrape(when, "a", KubeStateMetrics("a", Machine{
			Name: "one", Cordoned: true, Taint: "gpu",
			Labels: `,label_topology_kubernetes_io_zone="lon1",label_example_com_pool="x",label_example_org_other="y"`,
		}))
	})
	past := pastOf(t, r, history.Options{NodeLabels: []string{"example.com/pool", "topology.kubernetes.io/zone"}, NodeTaints: []string{"gpu", "other"}, NodeConditions: map[string]bool{"DiskPressure": false}})
	got := moments(t, past, 10, 30)
	require.Len(t, got, 1, "nothing changed")
	require.Equal(t, At(10), got[0].At)
	require.Len(t, got[0].Nodes, 1)
	node := got[0].Nodes[0]
	require.Equal(t, "one", node.Name)
	require.NotEmpty(t, node.UID)
	require.Equal(t, Epoch.Add(-24*time.Hour), node.CreationTimestamp.UTC())
	require.Equal(t, "civo://one", node.Spec.ProviderID)
	require.True(t, node.Spec.Unschedulable)
	require.Equal(t, []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}, node.Spec.Taints)
	require.Equal(t, "uuid-one", node.Status.NodeInfo.SystemUUID)
	require.Equal(t, map[string]string{
		"topology.kubernetes.io/zone": "lon1", "example.com/pool": "x", "node-role.kubernetes.io/worker": "",
	}, node.Labels)
	status, _ := ready(node)
	require.Equal(t, corev1.ConditionTrue, status)
	require.Len(t, node.Status.Conditions, 2)
}

func TestNodesAppearChangeAndAreDeleted(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(0, 60, func(when time.Time, minutes float64) {
		nodes := []Machine{{Name: "one"}}
		if minutes >= 20 && minutes < 40 {
			nodes = append(nodes, Machine{Name: "two"})
		}
		if minutes >= 30 && minutes < 35 {
			nodes[0].Ready = "unknown"
		}
		if minutes >= 50 {
			nodes[0].Cordoned = true
		}
		r.Scrape(when, "a", KubeStateMetrics("a", nodes...))
	})
	got := moments(t, pastOf(t, r, history.Options{}), 10, 60)
	require.Len(t, got, 6)
	require.Equal(t, []string{"one"}, names(got[0].Nodes))
	require.Equal(t, At(20), got[1].At)
	require.Equal(t, []string{"two"}, names(got[1].Nodes))
	require.Equal(t, At(30), got[2].At)
	status, since := ready(got[2].Nodes[0])
	require.Equal(t, corev1.ConditionUnknown, status)
	require.Equal(t, At(30), since)
	require.Equal(t, At(35), got[3].At)
	status, since = ready(got[3].Nodes[0])
	require.Equal(t, corev1.ConditionTrue, status)
	require.Equal(t, At(35), since)
	require.Equal(t, At(40), got[4].At)
	require.Equal(t, []string{"two"}, got[4].Gone)
	require.Equal(t, At(50), got[5].At)
	require.True(t, got[5].Nodes[0].Spec.Unschedulable)
	status, since = ready(got[5].Nodes[0])
	require.Equal(t, corev1.ConditionTrue, status)
	require.Equal(t, At(35), since, "the condition did not change")
	status, _ = ready(got[2].Nodes[0])
	require.Equal(t, corev1.ConditionUnknown, status, "a Node that was given is not changed later")
}

func TestKubeStateMetricsThatIsDownIsAGapAndDeletesNothing(t *testing.T) {
	t.Parallel()
	for name, restarted := range map[string]string{"the same instance": "a", "another instance": "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, marked := range []bool{true, false} { // whether Prometheus was there to write staleness markers
				r := New(t)
				Every(0, 20, func(when time.Time, _ float64) {
					r.Scrape(when, "a", KubeStateMetrics("a", Machine{Name: "one"}, Machine{Name: "two"}, Machine{Name: "three"}))
				})
				begin := At(24.5)
				if marked {
					r.Scrape(At(20), "a", nil)
					begin = At(20)
				}
				Every(30, 60, func(when time.Time, minutes float64) {
					r.Scrape(when, restarted, KubeStateMetrics(restarted, Machine{Name: "one"}, Machine{Name: "two", Ready: "false"}))
				})
				got := moments(t, pastOf(t, r, history.Options{}), 10, 60)
				require.Equal(t, []string{"one", "three", "two"}, names(got[0].Nodes))
				require.Equal(t, begin, got[1].At)
				require.NotNil(t, got[1].Gap)
				require.Equal(t, At(30), got[1].Gap.Until)
				require.Empty(t, got[1].Gone, "a scrape that fails deletes no Node")
				require.Equal(t, At(30), got[2].At)
				require.Nil(t, got[2].Gap)
				require.Equal(t, []string{"two"}, names(got[2].Nodes))
				require.Empty(t, got[2].Gone, "it may not know all Nodes yet")
				require.Len(t, got, 4)
				require.Equal(t, At(35), got[3].At)
				require.Equal(t, []string{"three"}, got[3].Gone)
			}
		})
	}
}

func TestOneOfSeveralKubeStateMetricsThatIsDownDeletesNoNode(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(0, 60, func(when time.Time, minutes float64) {
		r.Scrape(when, "a", KubeStateMetrics("a", Machine{Name: "one"}))
		switch {
		case minutes >= 20 && minutes < 30:
			r.Scrape(when, "b", nil)
		case minutes >= 40:
			r.Scrape(when, "b", KubeStateMetrics("b", Machine{Name: "three"}))
		default:
			r.Scrape(when, "b", KubeStateMetrics("b", Machine{Name: "two"}, Machine{Name: "three"}))
		}
	})
	got := moments(t, pastOf(t, r, history.Options{}), 10, 60)
	require.Len(t, got, 2)
	require.Equal(t, []string{"one", "three", "two"}, names(got[0].Nodes))
	require.Equal(t, At(40), got[1].At)
	require.Equal(t, []string{"two"}, got[1].Gone, "the control: it is deleted while its kube-state-metrics shows others")
}

func TestDataThatBeginsLateOrEndsEarlyIsAGap(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(30, 60, func(when time.Time, _ float64) { r.Scrape(when, "a", KubeStateMetrics("a", Machine{Name: "one"})) })
	got := moments(t, pastOf(t, r, history.Options{}), 10, 90)
	require.Len(t, got, 3)
	require.Equal(t, At(10), got[0].At)
	require.Equal(t, At(30), got[0].Gap.Until)
	require.Equal(t, []string{"one"}, names(got[1].Nodes))
	require.Equal(t, At(64.5), got[2].At)
	require.Equal(t, At(90), got[2].Gap.Until)
}

// TestWhatANodeLostIsRemoved: a role and a taint end, also while kube-state-metrics is
// down.
func TestWhatANodeLostIsRemoved(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]bool{"while it is shown": false, "while kube-state-metrics is down": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := New(t)
			Every(0, 60, func(when time.Time, minutes float64) {
				m := Machine{Name: "one", Role: "control-plane", Taint: "gpu"}
				if minutes >= 25 {
					m.Role, m.Taint = "worker", ""
				}
				if down && minutes >= 20 && minutes < 30 {
					r.Scrape(when, "a", nil)
					return
				}
				r.Scrape(when, "a", KubeStateMetrics("a", m))
			})
			got := moments(t, pastOf(t, r, history.Options{NodeTaints: []string{"gpu"}}), 10, 60)
			require.Len(t, got[0].Nodes[0].Spec.Taints, 1, "the control")
			require.Contains(t, got[0].Nodes[0].Labels, "node-role.kubernetes.io/control-plane")
			last := got[len(got)-1]
			require.Empty(t, last.Nodes[0].Spec.Taints)
			require.Equal(t, map[string]string{"node-role.kubernetes.io/worker": ""}, last.Nodes[0].Labels)
			if down {
				require.Equal(t, At(35), last.At, "what is there is asked for again after the lookback")
			} else {
				require.Equal(t, At(25), last.At)
			}
		})
	}
}

// TestARecreatedMachineIsAnotherNode, also under its old name, and between two steps.
func TestARecreatedMachineIsAnotherNode(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(0, 40, func(when time.Time, minutes float64) {
		m := Machine{Name: "one"}
		if minutes >= 20 {
			m.Created = At(19.75)
		}
		r.Scrape(when, "a", KubeStateMetrics("a", m))
	})
	got := moments(t, pastOf(t, r, history.Options{}), 10, 40)
	require.Len(t, got, 2)
	require.Equal(t, At(20), got[1].At)
	require.NotEqual(t, got[0].Nodes[0].UID, got[1].Nodes[0].UID)
}

// TestWhereTwoDisagreeTheNodeIsReady, as in the shipped rules.
func TestWhereTwoDisagreeTheNodeIsReady(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(0, 40, func(when time.Time, minutes float64) {
		one, other := Machine{Name: "one"}, Machine{Name: "one"}
		if minutes >= 20 {
			one.Ready = "unknown"
		}
		if minutes >= 30 {
			other.Ready = "unknown"
		}
		r.Scrape(when, "a", KubeStateMetrics("a", one))
		r.Scrape(when, "b", KubeStateMetrics("b", other))
	})
	got := moments(t, pastOf(t, r, history.Options{}), 10, 40)
	require.Len(t, got, 2)
	require.Equal(t, At(30), got[1].At)
	status, _ := ready(got[1].Nodes[0])
	require.Equal(t, corev1.ConditionUnknown, status)
}

// TestQueriesSelectOnlyTheOwnCluster, where one store has several: by its label, which a store of
// one cluster does not have.
func TestQueriesSelectOnlyTheOwnCluster(t *testing.T) {
	t.Parallel()
	for label, both := range map[string]bool{`,cluster="b"`: false, "": true} {
		r := New(t)
		Every(0, 40, func(when time.Time, _ float64) {
			for name, v := range KubeStateMetrics("a", Machine{Name: "one", Ready: "false"}) {
				r.Add(name[:len(name)-1]+`,cluster="a"}`, when, v)
			}
			for name, v := range KubeStateMetrics("b", Machine{Name: "two", Ready: "false"}) {
				r.Add(name[:len(name)-1]+label+"}", when, v)
			}
		})
		past := pastOf(t, r, history.Options{Rules: rulesOf(t, unready), ExternalLabels: model.LabelSet{"cluster": "a"}})
		got := moments(t, past, 10, 40)
		require.Equal(t, both, len(got[0].Nodes) == 2, label)
		require.Equal(t, both, len(got[0].Alerts) == 2, label)
		require.Equal(t, model.LabelValue("a"), got[0].Alerts[0].Labels["cluster"])
	}
}

// TestReplicasOfPrometheusAreMerged: some stores answer for both replicas of a Prometheus, each
// with a label of its own.
func TestReplicasOfPrometheusAreMerged(t *testing.T) {
	t.Parallel()
	for drop, alerts := range map[string]int{"prometheus_replica": 1, "": 2} {
		r := New(t)
		Every(0, 30, func(when time.Time, minutes float64) {
			shown := KubeStateMetrics("a", Machine{Name: "one"})
			shown[`ALERTS{alertname="A",alertstate="firing",node="one"}`] = 1
			for i, replica := range []string{"prometheus-0", "prometheus-1"} {
				for series, v := range shown {
					if minutes < 20 || i == 1 { // one of the two is down later
						r.Add(strings.TrimSuffix(series, "}")+`,prometheus_replica="`+replica+`"}`, when, v)
					}
				}
			}
		})
		got := map[string]bool{}
		for _, m := range moments(t, pastOf(t, r, history.Options{Recorded: true, ReplicaLabel: drop}), 10, 30) {
			for _, a := range m.Alerts {
				got[a.Labels.String()] = true
			}
		}
		require.Len(t, got, alerts, drop)
	}
}
