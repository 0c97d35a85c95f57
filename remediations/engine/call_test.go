package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
)

// logged is an Options.Log that keeps its lines.
func logged(lines *[]string) Options {
	return Options{Log: funcr.New(func(_, line string) { *lines = append(*lines, line) }, funcr.Options{})}
}

// asks is a provider that remembers its calls.
type asks struct {
	provider
	machines *[]Machine
}

func (a asks) Act(ctx context.Context, m Machine, mayStill func() error) (remediations.CallOutcome, error) {
	*a.machines = append(*a.machines, m)
	return a.provider.Act(ctx, m, mayStill)
}

// TestOnlyTheFirstRebootIsSoft: the first one is soft if the plan says so. Any later one is a power
// cycle.
func TestOnlyTheFirstRebootIsSoft(t *testing.T) {
	for soft, want := range map[bool][]bool{true: {true, false}, false: {false, false}} {
		c := modelConfig()
		c.Policies[0].Plan[0].Soft = soft
		inWorld(t, c, 6, func(t *testing.T, w *world) {
			var machines []Machine
			i := w.start()
			w.pass(16 * time.Second)
			i.engine.Actuators[""]["reboot"] = asks{provider{i, "reboot"}, &machines}
			w.do(func() { w.ail("n0", 9) })
			w.pass(25 * time.Minute)
			var got []bool
			for _, m := range machines {
				got = append(got, m.Soft)
			}
			require.Equal(t, want, got)
		})
	}
}

// TestACallHasItsPolicyAlertAndDeadline: the alert is the one that began the repair.
func TestACallHasItsPolicyAlertAndDeadline(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		var machines []Machine
		i := w.start()
		w.pass(16 * time.Second)
		i.engine.Actuators[""]["reboot"] = asks{provider{i, "reboot"}, &machines}
		w.do(func() { w.ail("n0", 9) })
		require.True(t, w.until(15*time.Minute, func() bool { return len(w.calls) == 1 }))
		r, alerts := modelRegistry.ReadJournal(w.nodes["n0"]).Record, remediations.AlertsOn(w.nodes["n0"].Annotations)
		require.Equal(t, w.config.Policies[0].Name, machines[0].Policy)
		require.Equal(t, r.Intent.At.Add(w.config.Policies[0].Plan[0].Wait), machines[0].Deadline)
		require.Equal(t, r.Cause.Alert, machines[0].Alert.Fingerprint)
		require.Equal(t, alerts[0].Labels, machines[0].Alert.Labels)
		require.Equal(t, r.Intent.BootID, machines[0].BootID)
	})
	require.Nil(t, alertOf(&lifecycle.State{}, &remediations.Record{Cause: remediations.Cause{Request: "a"}}), "a person asked")
}

// TestBeginningIsOneEvent: a further attempt does not count as another beginning, not even under
// another leader.
func TestBeginningIsOneEvent(t *testing.T) {
	for name, held := range map[string]bool{"at once": false, "after it was held": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					if held {
						w.hold("n0", edit(remediations.PauseKey, "true"))
					}
					w.ail("n0", 2)
				})
				w.pass(time.Minute)
				require.Equal(t, held, len(w.toldOf("RepairStarted")) == 0)
				w.do(func() { w.unhold("n0") })
				require.True(t, w.until(2*time.Minute, func() bool { return len(w.calls) == 1 }))
				w.pass(time.Minute)
				w.restart(w.config)
				require.True(t, w.until(15*time.Minute, func() bool { return len(w.calls) == 2 }))
				w.pass(time.Minute)
				require.Len(t, w.toldOf("RepairStarted"), 1)
				require.Len(t, w.toldOf("RepairStepIssued"), 2)
			})
		})
	}
}

// TestEvidenceOfAHostIsAnEventOnlyWhenItIsNew: a repeated statement is not reported again, and an
// empty one is not reported.
func TestEvidenceOfAHostIsAnEventOnlyWhenItIsNew(t *testing.T) {
	c := modelConfig()
	c.Policies[0].Plan[0].Attempts, c.Limits.RepairsPerNode = 4, 9
	says := ""
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		w.core.decide = func(s *lifecycle.State, now time.Time) lifecycle.Decision {
			if s.Survey != nil {
				said := *s.Survey
				said.Evidence, s.Survey = says, &said
			}
			return node.Decide(s, now)
		}
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.ail("n0", 9) })
		for attempt, now := range []struct {
			says string
			told int
		}{{"the disk is full", 1}, {"the disk is full", 1}, {"", 1}, {"bye", 2}} {
			w.do(func() { says = now.says })
			require.True(t, w.until(15*time.Minute, func() bool { return len(w.calls) == attempt+1 }))
			w.pass(time.Second)
			told := w.toldOf("RepairEvidence")
			require.Len(t, told, now.told)
			if now.says != "" {
				require.Contains(t, told[len(told)-1].Note, now.says)
			}
		}
	})
}

// TestACallThatWasLetOnceIsNotWithheld: an actuator may check more than once, and after a positive
// check it may have made its call.
func TestACallThatWasLetOnceIsNotWithheld(t *testing.T) {
	paused := remediations.Withhold(remediations.ReasonPaused, "paused")
	for name, c := range map[string]struct {
		looks []error
		want  remediations.Reason
	}{
		"it never asked":       {nil, ""},
		"let":                  {[]error{nil}, ""},
		"withheld":             {[]error{paused}, remediations.ReasonPaused},
		"let, then withheld":   {[]error{nil, paused}, ""},
		"withheld, then let":   {[]error{paused, nil}, ""},
		"no reason of its own": {[]error{errors.New("no")}, remediations.ReasonCallWithheld},
	} {
		t.Run(name, func(t *testing.T) {
			var l lookedLast
			for _, err := range c.looks {
				require.Equal(t, err, l.over(func() error { return err })())
			}
			require.Equal(t, c.want, l.withheld())
		})
	}
}

// TestSilenceIsOfTheNodeInItsCluster: an Alertmanager may serve several clusters. A silence that
// cannot be created costs only a page.
func TestSilenceIsOfTheNodeInItsCluster(t *testing.T) {
	for cluster, want := range map[string]map[string]string{"": {"node": "n0"}, "cluster": {"node": "n0", "cluster": "eu-1"}} {
		var lines []string
		o, quiet := logged(&lines), &silencer{}
		o.Config, o.Silencer = modelConfig(), quiet
		o.Config.ClusterLabel, o.Config.ClusterValue = cluster, "eu-1"
		p := &pass{Engine: &Engine{Options: o}}
		d := lifecycle.Decision{Policy: o.Config.Policies[0], Record: &remediations.Record{ID: "r1", Intent: &remediations.Intent{}}}
		require.Equal(t, "s1", p.silence(t.Context(), "n0", d))
		require.Equal(t, want, quiet.made["s1"])
		require.Empty(t, lines)
		quiet.refuses = true
		require.Empty(t, p.silence(t.Context(), "n0", d))
		require.Len(t, lines, 1)
		require.Contains(t, lines[0], "could not be silenced")
	}
}

// TestCauseIsNamedByItsAlert: the cause names its alert while the Node still has it, and no other
// alert of the node.
func TestCauseIsNamedByItsAlert(t *testing.T) {
	since := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	s := &lifecycle.State{Journal: remediations.Journal{Alerts: []remediations.Alert{
		{Fingerprint: "aa", Name: "DiskFull", StartsAt: since}, {Fingerprint: "bb", Name: "NodeNotReady", StartsAt: since},
	}}}
	p := &pass{}
	require.Equal(t, "alert NodeNotReady firing since 2026-03-04T12:00:00Z", p.causeOf(s, &remediations.Record{Cause: remediations.Cause{Alert: "bb"}}))
	gone := remediations.Cause{Alert: "cc"}
	require.Equal(t, gone.String(), p.causeOf(s, &remediations.Record{Cause: gone}))
}

// TestAnActuatorGetsTheIdentitiesOfTheNode: a provider finds the machine by these values.
func TestAnActuatorGetsTheIdentitiesOfTheNode(t *testing.T) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"}, Spec: corev1.NodeSpec{ProviderID: "civo://i-1"},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{SystemUUID: "4c4c4544-0042-3510-8054-b7c04f4d3332", BootID: "b1"}},
	}
	require.Equal(t, Machine{Node: "n1", UID: "u1", ProviderID: "civo://i-1", SystemUUID: "4c4c4544-0042-3510-8054-b7c04f4d3332", BootID: "b1"}, MachineOf(n))
}
