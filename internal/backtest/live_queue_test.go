package backtest

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/intake"
)

// TestAProcessThatDiesWithAFullQueueLosesNothingThatFires: its posts were answered 200 and nothing
// of them was written. Within two polls of Alertmanager the next leader has each alert that still
// fires on its Node, and what ended meanwhile is gone.
func TestAProcessThatDiesWithAFullQueueLosesNothingThatFires(t *testing.T) {
	const queued, ended, poll = 8192, 40, 15 * time.Second
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(midnight))
		var nodes []*corev1.Node
		for i := range queued + 1 {
			n := nodeAt(fmt.Sprintf("n%04d", i), corev1.ConditionFalse, midnight.Add(-time.Hour))
			n.Annotations, n.Labels = map[string]string{}, map[string]string{}
			nodes = append(nodes, n)
		}
		l := newLive(t, optionsOf(t, dayConfig).Config, poll, nodes...)
		l.takes = 8 * time.Millisecond // each write, as a real API server has it
		noWrite := func(context.Context, string, types.UID, map[string]*string) error {
			t.Error("the process that died wrote something")
			return nil
		}
		queue, err := intake.NewQueue(noWrite, clock.RealClock{}, prometheus.NewRegistry(), logr.Discard())
		require.NoError(t, err)
		next, err := intake.NewQueue(func(ctx context.Context, node string, _ types.UID, annotations map[string]*string) error {
			time.Sleep(l.takes)
			return l.patch(ctx, l.node(node), annotations)
		}, clock.RealClock{}, prometheus.NewRegistry(), logr.Discard())
		require.NoError(t, err)
		l.engine.Adopt = intake.Intake{Writer: next, Room: intake.NewRoom(), Now: time.Now}.Adopt
		successor := l.intake
		l.intake.Writer, l.intake.Room = queue, intake.NewRoom()

		// One alert is on its Node already. Its end is the last that the process takes.
		was := fmt.Sprintf("n%04d", queued)
		_, err = successor.Record(t.Context(), labelsOf(was), remediations.StatusFiring, time.Now())
		require.NoError(t, err)
		for i := range queued - 1 {
			l.alert(nodes[i].Name)
		}
		time.Sleep(2 * time.Second)
		_, err = l.intake.Record(t.Context(), labelsOf(was), remediations.StatusResolved, time.Now())
		require.NoError(t, err)
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = l.intake.Record(late, labelsOf(nodes[queued-1].Name), remediations.StatusFiring, time.Now())
		require.ErrorIs(t, err, intake.ErrQueueFull, "it was full when the process died")
		onNodes := func() (firing int) {
			for _, n := range nodes {
				for _, a := range remediations.AlertsOn(l.node(n.Name).Annotations) {
					if a.Status == remediations.StatusFiring {
						firing++
					}
				}
			}
			return firing
		}
		require.Equal(t, 1, onNodes(), "control: nothing but what was there before")

		l.intake = successor // the process is dead; some alerts end before another one leads
		for i := range ended {
			l.alertEnds(nodes[i].Name)
		}
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan error, 2)
		go func() { over <- next.Start(ctx) }()
		go func() { over <- l.engine.Start(ctx) }()
		defer stop()
		time.Sleep(2 * poll)
		for _, n := range nodes[ended : queued-1] {
			on := remediations.AlertsOn(l.node(n.Name).Annotations)
			require.Len(t, on, 1, "%s has its alert", n.Name)
			require.Equal(t, remediations.StatusFiring, on[0].Status)
		}
		time.Sleep(time.Minute)
		stop()
		require.NoError(t, <-over)
		require.NoError(t, <-over)
		require.Equal(t, queued-1-ended, onNodes(), "what ended while nobody listened is on no Node")
		synctest.Wait()
	})
}
