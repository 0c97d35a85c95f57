package drain

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/kube"
)

var errGuard = errors.New("a guard no longer holds")

func (s *started) endsPromptlyWith(cause error) kube.DrainReport {
	s.p.t.Helper()
	s.cancel(cause)
	report, err := s.ends()
	require.ErrorIs(s.p.t, err, cause)
	asked := s.p.asked()
	require.Never(s.p.t, func() bool { return s.p.asked() > asked }, 2*time.Second, 50*time.Millisecond, "an eviction after the end")
	return report
}

func TestNoEvictionIsSentWhenTheContextHasEnded(t *testing.T) {
	t.Run("while a budget holds, before the next round", func(t *testing.T) {
		p := newPlace(t)
		p.drainer.Every = 2 * lab.Patience // if the drain slept between rounds, it would not end in time
		p.replicas("web", 2)
		p.budget("web", "web", 1, 2)
		s := p.start(kube.DrainOptions{})
		s.says("is held back by PodDisruptionBudget")
		report := s.endsPromptlyWith(errGuard)
		require.Equal(t, 1, report.Evicted)
		require.Len(t, report.Held, 1)
		require.ErrorContains(t, s.err, "draining Node "+p.node+": "+errGuard.Error())
		require.ErrorContains(t, s.err, "PodDisruptionBudget", "and what was in the way")
	})
	t.Run("in the middle of hundreds", func(t *testing.T) {
		p := newPlace(t)
		p.replicas("web", 60)
		goOn := make(chan struct{})
		defer close(goOn)
		var n, waiting atomic.Int32
		p.onEviction(func(string) lab.Verdict {
			if n.Add(1) >= 10 {
				waiting.Add(1)
				<-goOn
			}
			return lab.Pass
		}, nil)
		s := p.start(kube.DrainOptions{})
		p.eventually(func() bool { return waiting.Load() == 8 }) // as many as are evicted at the same time, so no eviction is still on its way
		report := s.endsPromptlyWith(errGuard)
		require.Equal(t, 9+8, p.asked(), "those under way, and no more")
		require.LessOrEqual(t, report.Evicted, 9)
		require.Equal(t, 60, report.Total)
		require.Equal(t, 60, report.Left, "as far as it knows")
	})
	t.Run("before it begins", func(t *testing.T) {
		p := newPlace(t)
		p.replicas("web", 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errGuard)
		_, err := p.drainer.Drain(ctx, p.node, kube.DrainOptions{})
		require.ErrorIs(t, err, errGuard)
		require.ErrorContains(t, err, "its pods have not been read yet")
		require.Zero(t, p.asked())
	})
}

// The process dies after the evictions, and their answers are lost. The next process finds what is
// left.
func TestADrainContinuesAfterACrash(t *testing.T) {
	p := newPlace(t)
	p.replicas("web", 12)
	var s *started
	ready := make(chan struct{})
	var n atomic.Int32
	p.onEviction(nil, func(string) lab.Verdict {
		<-ready
		if n.Add(1) >= 3 {
			s.cancel(errGuard)
			return lab.Reset
		}
		return lab.Pass
	})
	s = p.start(kube.DrainOptions{})
	close(ready)
	report, err := s.ends()
	require.ErrorIs(t, err, errGuard)
	require.Less(t, report.Evicted, 12)
	p.onEviction(nil, nil)
	p.drainer = kube.Drainer{Client: p.drainer.Client, Now: time.Now, Every: p.drainer.Every}
	report, err = p.drain(kube.DrainOptions{})
	require.NoError(t, err)
	require.Zero(t, report.Left)
	require.Empty(t, p.on())
	times := map[string]int{}
	for _, pod := range p.evictions {
		times[pod]++
	}
	require.Len(t, times, 12)
}

// A pod on a machine that is off never ends. The drain waits for it, but not for ever.
func TestPodsOnADeadNodeAreNotWaitedForForEver(t *testing.T) {
	p := newPlace(t)
	p.replicas("web", 2)
	p.replicas("held", 2)
	p.lab.Break(p.node)
	t.Cleanup(func() { require.NoError(t, p.lab.Heal(context.WithoutCancel(t.Context()), p.node, "")) })
	p.eventually(func() bool {
		n, err := p.admin.CoreV1().Nodes().Get(t.Context(), p.node, metav1.GetOptions{})
		return err == nil && remediations.ReadyCondition(n).Status == corev1.ConditionUnknown
	})
	p.budget("held", "held", 1, 0) // the pods of a silent node do not count as healthy, so this budget allows no eviction
	s := p.start(kube.DrainOptions{DeadAfter: 10 * time.Second})
	s.says("4 of 4 pods are left, 2 of them terminating; ")
	s.says("2 of 4 pods are left; 2 not counted, which are terminating on a node that does not end them; " + p.ns + "/held-")
	require.NoError(t, p.admin.PolicyV1().PodDisruptionBudgets(p.ns).Delete(t.Context(), "held", metav1.DeleteOptions{}))
	report, err := s.ends()
	require.NoError(t, err)
	require.Equal(t, kube.DrainReport{Total: 4, Evicted: 4, Stuck: 4}, report)
	require.Equal(t, "no pod is left to wait for; 4 not counted, which are terminating on a node that does not end them", report.String())
	require.Len(t, p.on(), 4, fmt.Sprint("the API server still shows them: ", report))
}
