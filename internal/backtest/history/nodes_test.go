package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

// quiet are rules that never fire.
const quiet = "groups: [{name: quiet, rules: [{alert: Never, expr: 'kube_node_info == 2'}]}]"

func pastOf(t testing.TB, r *Recording, o history.Options) *history.Past {
	t.Helper()
	if o.Rules == nil && !o.Recorded {
		o.Rules = rulesOf(t, quiet)
	}
	return openTSDB(t, r.Blocks(2*time.Hour), o)
}

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
	past := pastOf(t, r, history.Options{NodeLabels: []string{"example.com/pool"}})
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
	require.Equal(t, "v1.36.3", node.Status.NodeInfo.KubeletVersion)
	require.Equal(t, "uuid-one", node.Status.NodeInfo.SystemUUID)
	require.Equal(t, map[string]string{
		"topology.kubernetes.io/zone": "lon1", "example.com/pool": "x", "node-role.kubernetes.io/worker": "",
	}, node.Labels)
	status, _ := ready(node)
	require.Equal(t, corev1.ConditionTrue, status)
	require.Len(t, node.Status.Conditions, 2)
	require.Contains(t, past.Skipped(), history.Skip{
		What: "kube_node_labels{label_example_org_other}",
		Why:  "the name that this label has on the Node is not known, so no Node has it",
	})
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
			nodes[0].Version = "v1.37.0"
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
	require.Equal(t, "v1.37.0", got[5].Nodes[0].Status.NodeInfo.KubeletVersion)
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
				if restarted == "a" { // the control: a Node that the same kube-state-metrics no longer shows is gone
					require.Len(t, got, 3)
					require.Equal(t, []string{"three"}, got[2].Gone)
					continue
				}
				require.Empty(t, got[2].Gone, "its successor may not know all Nodes yet")
				require.Len(t, got, 4)
				require.Equal(t, At(35), got[3].At)
				require.Equal(t, []string{"three"}, got[3].Gone)
			}
		})
	}
}

func TestOneOfSeveralKubeStateMetricsThatIsDownIsNoDeletion(t *testing.T) {
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
