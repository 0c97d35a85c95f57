package engine

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// aside collects the work beside the loop of an engine that Step drives.
type aside []func()

func (a *aside) add(f func()) { *a = append(*a, f) }

func (a *aside) work() bool {
	if len(*a) == 0 {
		return false
	}
	f := (*a)[0]
	*a = (*a)[1:]
	f()
	return true
}

// acts is a provider that reboots.
type acts struct{ times int }

func (a *acts) Act(_ context.Context, _ Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if err := mayStill(); err != nil {
		return remediations.CallRefused, err
	}
	a.times++
	return remediations.CallAccepted, nil
}

// TestStepGoesAsFarAsItCanAtOnce: in one Step an alert is adopted, confirmed and decided upon, and
// its call is made and answered. This needs no goroutines, and no time passes.
func TestStepGoesAsFarAsItCanAtOnce(t *testing.T) {
	t.Parallel()
	for name, ready := range map[string]corev1.ConditionStatus{"an ill node": corev1.ConditionFalse, "a well one": corev1.ConditionTrue} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := modelConfig()
			c.Policies[0].For, c.Limits.StartupGrace = 0, time.Minute
			w := newStill(c, 10, 1)
			w.nodes[0].Status.Conditions[0].Status = ready
			w.words[0].Alerts[remediations.AlertsOn(w.nodes[0].Annotations)[0].Fingerprint] = routed(w)
			var beside aside
			provider, now := &acts{}, clocktesting.NewFakeClock(time.Now())
			e := New(Options{
				Config: c, Fleet: w, Writer: w, Store: w, Alerts: w, Actuators: map[string]map[string]Actuator{"": {"reboot": provider}}, Events: w,
				Metrics: prometheus.NewRegistry(), Clock: now, Log: logr.Discard(), PollInterval: 15 * time.Second, CallTimeout: time.Minute,
				NewID: func() string { return "r0000" }, Beside: beside.add,
			})
			next := e.Step(t.Context(), true, beside.work)
			require.Positive(t, next)
			require.LessOrEqual(t, next, idle)
			require.Empty(t, beside, "all of it was done")
			require.False(t, e.Idle(), "an alert of a policy fires")
			r := e.journal(w.nodes[0]).Record
			require.NotNil(t, r)
			if ready == corev1.ConditionTrue {
				require.Equal(t, remediations.PhasePending, r.Phase)
				require.Equal(t, remediations.ReasonNotWitnessed, r.Hold.Reason)
				require.Zero(t, provider.times)
				return
			}
			require.Equal(t, remediations.PhaseVerifying, r.Phase)
			require.Equal(t, 1, provider.times)
			e.Step(t.Context(), true, beside.work)
			require.Equal(t, 1, provider.times, "it is not asked twice")
		})
	}
}

// routed is the alert on the first node, as it comes from Alertmanager.
func routed(w *still) alerts.Alert {
	for _, a := range w.words[0].Alerts {
		a.Receivers = []string{"drydock"}
		return a
	}
	return alerts.Alert{}
}
