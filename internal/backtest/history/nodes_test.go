package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/backtest/history"
)

// quiet are rules that never fire.
const quiet = "groups: [{name: quiet, rules: [{alert: Never, expr: 'kube_node_info == 2'}]}]"

func (r *recording) past(o history.Options) *history.Past {
	if o.Rules == nil && !o.Recorded {
		o.Rules = rulesOf(r.t, quiet)
	}
	return openTSDB(r.t, r.blocks(2*time.Hour), o)
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
	r := newRecording(t)
	every(0, 30, func(when time.Time, _ float64) {
		r.scrape(when, "a", ksm("a", machine{
			name: "one", cordoned: true, taint: "gpu",
			labels: `,label_topology_kubernetes_io_zone="lon1",label_example_com_pool="x",label_example_org_other="y"`,
		}))
	})
	past := r.past(history.Options{NodeLabels: []string{"example.com/pool"}})
	got := moments(t, past, 10, 30)
	require.Len(t, got, 1, "nothing changed")
	require.Equal(t, at(10), got[0].At)
	require.Len(t, got[0].Nodes, 1)
	node := got[0].Nodes[0]
	require.Equal(t, "one", node.Name)
	require.NotEmpty(t, node.UID)
	require.Equal(t, epoch.Add(-24*time.Hour), node.CreationTimestamp.UTC())
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
	r := newRecording(t)
	every(0, 60, func(when time.Time, minutes float64) {
		nodes := []machine{{name: "one"}}
		if minutes >= 20 && minutes < 40 {
			nodes = append(nodes, machine{name: "two"})
		}
		if minutes >= 30 && minutes < 35 {
			nodes[0].ready = "unknown"
		}
		if minutes >= 50 {
			nodes[0].version = "v1.37.0"
		}
		r.scrape(when, "a", ksm("a", nodes...))
	})
	got := moments(t, r.past(history.Options{}), 10, 60)
	require.Len(t, got, 6)
	require.Equal(t, []string{"one"}, names(got[0].Nodes))
	require.Equal(t, at(20), got[1].At)
	require.Equal(t, []string{"two"}, names(got[1].Nodes))
	require.Equal(t, at(30), got[2].At)
	status, since := ready(got[2].Nodes[0])
	require.Equal(t, corev1.ConditionUnknown, status)
	require.Equal(t, at(30), since)
	require.Equal(t, at(35), got[3].At)
	status, since = ready(got[3].Nodes[0])
	require.Equal(t, corev1.ConditionTrue, status)
	require.Equal(t, at(35), since)
	require.Equal(t, at(40), got[4].At)
	require.Equal(t, []string{"two"}, got[4].Gone)
	require.Equal(t, at(50), got[5].At)
	require.Equal(t, "v1.37.0", got[5].Nodes[0].Status.NodeInfo.KubeletVersion)
	status, since = ready(got[5].Nodes[0])
	require.Equal(t, corev1.ConditionTrue, status)
	require.Equal(t, at(35), since, "the condition did not change")
	status, _ = ready(got[2].Nodes[0])
	require.Equal(t, corev1.ConditionUnknown, status, "a Node that was given is not changed later")
}

func TestKubeStateMetricsThatIsDownIsAGapAndDeletesNothing(t *testing.T) {
	t.Parallel()
	for name, restarted := range map[string]string{"the same instance": "a", "another instance": "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, marked := range []bool{true, false} { // whether Prometheus was there to write staleness markers
				r := newRecording(t)
				every(0, 20, func(when time.Time, _ float64) {
					r.scrape(when, "a", ksm("a", machine{name: "one"}, machine{name: "two"}, machine{name: "three"}))
				})
				begin := at(24.5)
				if marked {
					r.scrape(at(20), "a", nil)
					begin = at(20)
				}
				every(30, 60, func(when time.Time, minutes float64) {
					r.scrape(when, restarted, ksm(restarted, machine{name: "one"}, machine{name: "two", ready: "false"}))
				})
				got := moments(t, r.past(history.Options{}), 10, 60)
				require.Equal(t, []string{"one", "three", "two"}, names(got[0].Nodes))
				require.Equal(t, begin, got[1].At)
				require.NotNil(t, got[1].Gap)
				require.Equal(t, at(30), got[1].Gap.Until)
				require.Empty(t, got[1].Gone, "a scrape that fails deletes no Node")
				require.Equal(t, at(30), got[2].At)
				require.Nil(t, got[2].Gap)
				require.Equal(t, []string{"two"}, names(got[2].Nodes))
				if restarted == "a" { // the control: a Node that the same kube-state-metrics no longer shows is gone
					require.Len(t, got, 3)
					require.Equal(t, []string{"three"}, got[2].Gone)
					continue
				}
				require.Empty(t, got[2].Gone, "its successor may not know all Nodes yet")
				require.Len(t, got, 4)
				require.Equal(t, at(35), got[3].At)
				require.Equal(t, []string{"three"}, got[3].Gone)
			}
		})
	}
}

func TestOneOfSeveralKubeStateMetricsThatIsDownIsNoDeletion(t *testing.T) {
	t.Parallel()
	r := newRecording(t)
	every(0, 60, func(when time.Time, minutes float64) {
		r.scrape(when, "a", ksm("a", machine{name: "one"}))
		switch {
		case minutes >= 20 && minutes < 30:
			r.scrape(when, "b", nil)
		case minutes >= 40:
			r.scrape(when, "b", ksm("b", machine{name: "three"}))
		default:
			r.scrape(when, "b", ksm("b", machine{name: "two"}, machine{name: "three"}))
		}
	})
	got := moments(t, r.past(history.Options{}), 10, 60)
	require.Len(t, got, 2)
	require.Equal(t, []string{"one", "three", "two"}, names(got[0].Nodes))
	require.Equal(t, at(40), got[1].At)
	require.Equal(t, []string{"two"}, got[1].Gone, "the control: it is deleted while its kube-state-metrics shows others")
}

func TestDataThatBeginsLateOrEndsEarlyIsAGap(t *testing.T) {
	t.Parallel()
	r := newRecording(t)
	every(30, 60, func(when time.Time, _ float64) { r.scrape(when, "a", ksm("a", machine{name: "one"})) })
	got := moments(t, r.past(history.Options{}), 10, 90)
	require.Len(t, got, 3)
	require.Equal(t, at(10), got[0].At)
	require.Equal(t, at(30), got[0].Gap.Until)
	require.Equal(t, []string{"one"}, names(got[1].Nodes))
	require.Equal(t, at(64.5), got[2].At)
	require.Equal(t, at(90), got[2].Gap.Until)
}
