package kube_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	testclock "k8s.io/utils/clock/testing"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/kube"
)

// crier keeps the posts.
type crier struct {
	posted []string
	fails  error
}

func (c *crier) post(_ context.Context, ends []kube.Ended) error {
	if c.fails != nil {
		return c.fails
	}
	for _, e := range ends {
		c.posted = append(c.posted, e.Node+" "+e.ID+" "+string(e.Outcome))
	}
	return nil
}

// TestEachEndIsReportedOnceAlsoByAnotherLeader: ends while no Alertmanager answered, or while no
// replica led, are reported for 24 hours. These ends are not reported: those before the first
// leader began, those of observed repairs, and those of repairs without a step.
func TestEachEndIsReportedOnceAlsoByAnotherLeader(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	clock := testclock.NewFakePassiveClock(noon)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{}}}
	ends := func(id string, outcome remediations.Outcome, at time.Time, steps ...remediations.Attempt) {
		e := remediations.Entry{ID: id, Policy: "p", Outcome: outcome, Began: at.Add(-time.Minute), Ended: at, Steps: steps}
		node.Annotations[remediations.HistoryKey] = remediations.EncodeHistory(remediations.DecodeHistory(node.Annotations[remediations.HistoryKey]), e)
	}
	reboot := remediations.Attempt{Name: "reboot", Number: 1}
	client, people := fake.NewClientset(), &crier{}
	leader := func() kube.Notifier {
		return kube.Notifier{
			Client: client, Reported: types.NamespacedName{Namespace: "drydock", Name: "drydock-ledger-reported"}, Clock: clock, Post: people.post,
			Nodes: func(context.Context) ([]*corev1.Node, error) { return []*corev1.Node{node}, nil },
		}
	}
	first := leader()
	ends("before", remediations.OutcomeRecovered, noon.Add(-time.Hour), reboot)
	require.NoError(t, first.Notify(t.Context()))
	clock.SetTime(noon.Add(time.Minute))
	ends("none", remediations.OutcomeSelfRecovered, clock.Now())
	ends("aaaaaa", remediations.OutcomeExhausted, clock.Now(), reboot)
	require.NoError(t, first.Notify(t.Context()))
	require.NoError(t, first.Notify(t.Context()))
	require.Equal(t, []string{"n1 aaaaaa Exhausted"}, people.posted)

	clock.SetTime(noon.Add(time.Hour))
	ends("bbbbbb", remediations.OutcomeRecovered, clock.Now(), reboot)
	people.fails = errors.New("no Alertmanager answers")
	require.ErrorContains(t, first.Notify(t.Context()), "no Alertmanager answers")
	people.fails = nil
	clock.SetTime(noon.Add(23 * time.Hour))
	second := leader()
	require.NoError(t, second.Notify(t.Context()))
	require.NoError(t, first.Notify(t.Context()))
	require.Equal(t, []string{"n1 aaaaaa Exhausted", "n1 bbbbbb Recovered"}, people.posted)

	// A day later the first end is forgotten, and is too old to be reported again.
	clock.SetTime(noon.Add(48 * time.Hour))
	ends("cccccc", remediations.OutcomeRecovered, clock.Now(), reboot)
	require.NoError(t, second.Notify(t.Context()))
	require.NoError(t, second.Notify(t.Context()))
	require.Equal(t, []string{"n1 aaaaaa Exhausted", "n1 bbbbbb Recovered", "n1 cccccc Recovered"}, people.posted)
	cm, err := client.CoreV1().ConfigMaps("drydock").Get(t.Context(), "drydock-ledger-reported", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotContains(t, cm.Data["reported.json"], "aaaaaa")

	cm.Data["reported.json"] = "?"
	_, err = client.CoreV1().ConfigMaps("drydock").Update(t.Context(), cm, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, second.Notify(t.Context()), "the content of ConfigMap drydock/drydock-ledger-reported is not valid, so no end of a repair is reported; delete the ConfigMap to begin again")
}
