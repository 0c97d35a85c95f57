package backtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
)

const dayConfig = `
apiVersion: drydock.dev/v1alpha1
kind: Config
mode: observe
receiver: {tokenFile: /token}
alertmanager: {urls: ["http://alertmanager:9093"], blindWhen: ['alertname="DrydockSourceDown"']}
providers:
  civo: {clusterID: 9c89d8b9-463d-45f2-8928-455eb3f3726a, region: LON1, apiKeyFile: /key}
limits: {concurrent: 1, unhealthy: 20%, stormCooldown: 10m, startupGrace: 10m}
windows: [{from: "08:00", to: "17:00", timezone: UTC}]
policies:
- name: node-not-ready
  match: ['remediation="node-not-ready"']
  witness: [{ready: false}]
  for: 2m
  plan: [{step: reboot, wait: 10m, attempts: 2}]
  proofFor: 30s
  onExhausted: cordon
`

var midnight = time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)

func at(hour, minute int) time.Time {
	return midnight.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
}

func optionsOf(t testing.TB, text string) Options {
	t.Helper()
	c, _, err := config.Read(strings.NewReader(text), config.Options{SkipFiles: true})
	require.NoError(t, err)
	shipped, err := os.ReadFile("../../deploy/alertmanager.yaml")
	require.NoError(t, err)
	routing, err := ReadRouting(shipped)
	require.NoError(t, err)
	return Options{
		Config: Enforced(c.Core), Alertmanager: routing, BlindWhen: c.Alertmanager.BlindWhen, PollInterval: c.Alertmanager.PollInterval,
		Cures: UsualCures(),
	}
}

// past is made by hand.
type past map[time.Time]*history.Moment

func (p past) at(t time.Time) *history.Moment {
	if p[t] == nil {
		p[t] = &history.Moment{At: t}
	}
	return p[t]
}

func (p past) moments() (out []history.Moment) {
	for _, m := range p {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b history.Moment) int { return a.At.Compare(b.At) })
	return out
}

func nodeAt(name string, ready corev1.ConditionStatus, since time.Time) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(midnight.Add(-24 * time.Hour))},
		Spec:       corev1.NodeSpec{ProviderID: "civo://" + name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(since)}}},
	}
}

// ill makes a node that is not Ready for that time; its alert fires from five minutes after the
// beginning to one after the end.
func (p past) ill(name string, from, to time.Time) {
	p.at(from).Nodes = append(p.at(from).Nodes, nodeAt(name, corev1.ConditionUnknown, from))
	a := history.Alert{Labels: model.LabelSet{"alertname": "NodeNotReady", "node": model.LabelValue(name), "remediation": "node-not-ready"}, StartsAt: from.Add(5 * time.Minute)}
	p.at(a.StartsAt).Alerts = append(p.at(a.StartsAt).Alerts, a)
	if to.IsZero() {
		return
	}
	p.at(to).Nodes = append(p.at(to).Nodes, nodeAt(name, corev1.ConditionTrue, to))
	a.EndsAt = to.Add(time.Minute)
	p.at(a.EndsAt).Alerts = append(p.at(a.EndsAt).Alerts, a)
}

// day is a day with several faults: a node that flaps, one that recovers by itself, one that does
// not until the evening, a storm, and an unhealthy node while no repair is allowed.
func day() past {
	p := past{}
	for i := range 20 {
		p.at(midnight).Nodes = append(p.at(midnight).Nodes, nodeAt(fmt.Sprintf("n%02d", i), corev1.ConditionTrue, midnight.Add(-time.Hour)))
	}
	for i := range 5 {
		p.ill("n04", at(8, 10*i+5), at(8, 10*i+11))
	}
	p.ill("n01", at(10, 0), at(10, 12))
	p.ill("n02", at(12, 0), at(20, 0))
	for i := 5; i < 13; i++ {
		p.ill(fmt.Sprintf("n%02d", i), at(14, 0), at(14, 30))
	}
	p.ill("n03", at(18, 0), at(19, 30))
	return p
}

func replay(t testing.TB, o Options, moments []history.Moment, from, until time.Time) *Replay {
	t.Helper()
	r := New(o, from)
	for _, m := range moments {
		require.NoError(t, r.Feed(t.Context(), m))
	}
	require.NoError(t, r.Until(t.Context(), until))
	r.Finish(until)
	return r
}

func summary(t testing.TB, r *Replay) string {
	t.Helper()
	text, err := json.MarshalIndent(map[string]any{"repairs": r.story.repairs, "holds": r.story.heldBy(), "breakers": r.story.openings, "most": r.story.most}, "", " ")
	require.NoError(t, err)
	return string(text)
}

func of(r *Replay, node string) (out []*Repair) {
	for _, one := range r.story.repairs {
		if one.Node == node {
			out = append(out, one)
		}
	}
	return out
}

func TestADayAsItWent(t *testing.T) {
	t.Parallel()
	r := replay(t, optionsOf(t, dayConfig), day().moments(), midnight, at(24, 0))

	short := of(r, "n01")
	require.Len(t, short, 1)
	require.Len(t, short[0].Steps, 1)
	require.True(t, short[0].Unnecessary, "it recovered by itself within the wait")
	require.Equal(t, remediations.OutcomeSelfRecovered, short[0].Outcome)

	long := of(r, "n02")
	require.Len(t, long, 1)
	require.Len(t, long[0].Steps, 2)
	require.Equal(t, remediations.OutcomeExhausted, long[0].Outcome)
	require.False(t, long[0].Unnecessary)
	for i := 5; i < 13; i++ {
		for _, one := range of(r, fmt.Sprintf("n%02d", i)) {
			require.Empty(t, one.Steps, "a storm stops repairs")
			require.False(t, one.Over.IsZero(), "it ended with its alert")
		}
	}
	require.NotEmpty(t, r.story.openings)
	require.Equal(t, "cluster", r.story.openings[0].Scope)
	for _, one := range of(r, "n04") {
		require.Empty(t, one.Steps, "its alert never lasted")
	}
	for _, one := range of(r, "n03") {
		require.Empty(t, one.Steps, "outside of the window")
	}
	held := map[remediations.Reason]time.Duration{}
	for _, h := range r.story.heldBy() {
		held[h.Reason] += time.Duration(h.Total)
	}
	require.Greater(t, held[remediations.ReasonFleetUnhealthy], 8*10*time.Minute)
	require.Greater(t, held[remediations.ReasonOutsideWindow], time.Hour)
	require.Greater(t, held[remediations.ReasonTooYoung], 5*2*time.Minute-time.Minute)
	require.Equal(t, 1, r.story.most)
}

func TestADayAsIfEachStepHadCured(t *testing.T) {
	t.Parallel()
	o := optionsOf(t, dayConfig)
	o.Curing = true
	r := replay(t, o, day().moments(), midnight, at(24, 0))
	long := of(r, "n02")
	require.Len(t, long, 1)
	require.Len(t, long[0].Steps, 1)
	require.Equal(t, remediations.OutcomeRecovered, long[0].Outcome)
	require.InDelta(t, 7*time.Hour+48*time.Minute, time.Duration(long[0].Saved), float64(5*time.Minute))
}

// TestTheSamePastGivesTheSameDecisions, also when it is taken in pieces.
func TestTheSamePastGivesTheSameDecisions(t *testing.T) {
	t.Parallel()
	for _, curing := range []bool{false, true} {
		o := optionsOf(t, dayConfig)
		o.Curing = curing
		whole := summary(t, replay(t, o, day().moments(), midnight, at(24, 0)))
		require.Contains(t, whole, "reboot:1")
		require.Equal(t, whole, summary(t, replay(t, o, day().moments(), midnight, at(24, 0))))

		pieces := New(o, midnight)
		moments := day().moments()
		for to := midnight; !to.After(at(24, 0)); to = to.Add(7 * time.Minute) {
			for len(moments) > 0 && moments[0].At.Before(to) {
				require.NoError(t, pieces.Feed(t.Context(), moments[0]))
				moments = moments[1:]
			}
			require.NoError(t, pieces.Until(t.Context(), to))
		}
		pieces.Finish(at(24, 0))
		require.Equal(t, whole, summary(t, pieces))
	}
}

// given gives moments as a source.
type given []history.Moment

func (g given) Moments(_ context.Context, _, _ time.Time, yield func(history.Moment) error) error {
	for _, m := range g {
		if err := yield(m); err != nil {
			return err
		}
	}
	return nil
}

func (given) Skipped() []history.Skip {
	return []history.Skip{{What: "block 01J", Why: "it has no index"}}
}

// TestNothingIsDecidedInAGap: the same fault outside of a gap is repaired.
func TestNothingIsDecidedInAGap(t *testing.T) {
	t.Parallel()
	for name, gap := range map[string]bool{"a gap": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := past{}
			for i := range 10 {
				p.at(midnight).Nodes = append(p.at(midnight).Nodes, nodeAt(fmt.Sprintf("n%02d", i), corev1.ConditionTrue, midnight.Add(-time.Hour)))
			}
			p.ill("n01", at(10, 0), at(12, 0))
			if gap {
				p.at(at(10, 6)).Gap = &history.Gap{Until: at(12, 30), Why: "nothing was recorded"}
			}
			moments := p.moments()
			if gap {
				moments = slices.DeleteFunc(moments, func(m history.Moment) bool { return m.At.After(at(10, 6)) })
				end := history.Moment{At: at(12, 30), Nodes: p[at(12, 0)].Nodes, Alerts: p[at(12, 1)].Alerts}
				moments = append(moments, end)
			}
			r := replay(t, optionsOf(t, dayConfig), moments, midnight, at(24, 0))
			require.Len(t, of(r, "n01"), 1)
			require.Equal(t, gap, len(of(r, "n01")[0].Steps) == 0)
			require.Equal(t, gap, len(r.gaps) == 1)
		})
	}
}

// TestAnInhibitedAlertRepairsNothing: by the shipped rule, NodesNotReady inhibits the alert of one
// node.
func TestAnInhibitedAlertRepairsNothing(t *testing.T) {
	t.Parallel()
	for name, inhibited := range map[string]bool{"inhibited": true, "not inhibited": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := past{}
			for i := range 10 {
				p.at(midnight).Nodes = append(p.at(midnight).Nodes, nodeAt(fmt.Sprintf("n%02d", i), corev1.ConditionTrue, midnight.Add(-time.Hour)))
			}
			p.ill("n01", at(10, 0), at(11, 0))
			if inhibited {
				p.at(at(9, 0)).Alerts = []history.Alert{{Labels: model.LabelSet{"alertname": "NodesNotReady", "remediation": "none"}, StartsAt: at(9, 0)}}
			}
			r := replay(t, optionsOf(t, dayConfig), p.moments(), midnight, at(24, 0))
			issued := 0
			for _, one := range of(r, "n01") {
				issued += len(one.Steps)
			}
			require.Equal(t, inhibited, issued == 0)
		})
	}
}

// TestNoAlertBeginsOnACuredNodeWhileItsFaultLasted in the past. After the fault's end, alerts begin
// again.
func TestNoAlertBeginsOnACuredNodeWhileItsFaultLasted(t *testing.T) {
	t.Parallel()
	for name, lasted := range map[string]bool{"the fault lasted": true, "it was over": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := past{}
			for i := range 10 {
				p.at(midnight).Nodes = append(p.at(midnight).Nodes, nodeAt(fmt.Sprintf("n%02d", i), corev1.ConditionTrue, midnight.Add(-time.Hour)))
			}
			end := at(11, 0)
			if lasted {
				end = at(14, 0)
			}
			p.ill("n01", at(10, 0), end)
			p.at(at(12, 0)).Alerts = append(p.at(at(12, 0)).Alerts, history.Alert{
				Labels: model.LabelSet{"alertname": "NodeUnreachable", "node": "n01", "remediation": "node-not-ready"}, StartsAt: at(12, 0),
			})
			o := optionsOf(t, dayConfig)
			o.Curing = true
			moments := slices.DeleteFunc(p.moments(), func(m history.Moment) bool { return m.At.After(at(12, 1)) })
			r := replay(t, o, moments, midnight, at(12, 1))
			require.NotEmpty(t, of(r, "n01"))
			require.Equal(t, remediations.OutcomeRecovered, of(r, "n01")[0].Outcome)
			require.Equal(t, lasted, len(of(r, "n01")) == 1)
			require.Equal(t, lasted, len(r.alerts.active) == 0)
		})
	}
}

// TestAnExhaustedNodeIsResetWhenItsAlertEnds, and not before: then its next fault is repaired.
func TestAnExhaustedNodeIsResetWhenItsAlertEnds(t *testing.T) {
	t.Parallel()
	p := past{}
	for i := range 10 {
		p.at(midnight).Nodes = append(p.at(midnight).Nodes, nodeAt(fmt.Sprintf("n%02d", i), corev1.ConditionTrue, midnight.Add(-time.Hour)))
	}
	p.ill("n01", at(10, 0), at(12, 0))
	p.ill("n01", at(15, 0), at(16, 0))
	r := New(optionsOf(t, dayConfig), midnight)
	exhausted := func() bool {
		is := r.config.Registry.ReadJournal(r.node["n01"].now).Record
		return is != nil && is.Phase == remediations.PhaseExhausted
	}
	for _, m := range p.moments() {
		require.NoError(t, r.Feed(t.Context(), m))
		if m.At.Equal(at(12, 0)) {
			require.True(t, exhausted(), "its alert still fires")
		}
		if m.At.Equal(at(15, 0)) {
			require.False(t, exhausted())
		}
	}
	require.NoError(t, r.Until(t.Context(), at(24, 0)))
	require.Len(t, of(r, "n01"), 2)
	require.NotEmpty(t, of(r, "n01")[1].Steps)
}
