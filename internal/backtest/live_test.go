package backtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/lifecycle"
)

// apart is what only one of the two did: a call, or for a while a hold. Others are the calls of the
// other one.
type apart struct {
	call
	others []call
	// held is nil for a call.
	held *heldOtherwise
}

// cause explains what only one of the two did. The report says it.
type cause struct {
	said string
	of   func(l *live, a apart) bool
}

// near says that the other one made the same call at another time, not further away than that.
func (a apart) near(most time.Duration) bool {
	return slices.ContainsFunc(a.others, func(o call) bool { return o.node == a.node && o.step == a.step && a.at.Sub(o.at).Abs() <= most })
}

const bootless = "The record has no boot IDs, so a reboot that cured looks like a recovery. Such a repair keeps its slot for its whole wait, and a breaker that waits for its proof opens again."

// lately says that one of the times is before at, by not more than most.
func lately(at time.Time, most time.Duration, times ...time.Time) bool {
	return slices.ContainsFunc(times, func(t time.Time) bool { return !at.Before(t) && at.Sub(t) < most })
}

// causes are why the replay of a day may make another call than Drydock made in it, make one at
// another minute, or hold a node for another reason. There are no others.
var causes = []cause{
	{"The record has no approvals, pauses, requests and break-glass, so the replay has none. A silence is known only while Drydock held a repair for it.", func(l *live, a apart) bool {
		return slices.ContainsFunc(l.silences[a.node], func(s span) bool { return lately(a.at, s.until.Sub(s.from)+time.Minute, s.from) })
	}},
	{"A cordon in the record counts as a person's cordon, also if Drydock set it.", func(l *live, a apart) bool {
		return lately(a.at, 30*time.Minute, l.cordonedAt[a.node]...)
	}},
	{"A breaker records to the minute when the fleet became calm, so a call after that may come a minute sooner or later.", func(l *live, a apart) bool {
		stormed := slices.ContainsFunc(l.holds[a.node], func(s span) bool {
			return strings.HasPrefix(s.hold, string(remediations.ReasonFleetUnhealthy)) && lately(a.at, s.until.Sub(s.from)+30*time.Minute, s.from)
		})
		return stormed && (a.held == nil && a.near(time.Minute) || a.held != nil && a.held.until.Sub(a.held.from) <= time.Minute)
	}},
	{bootless, func(l *live, a apart) bool {
		const wait = 10 * time.Minute // of the policy's step; the repair that waited for the slot has two
		return lately(a.at, 2*wait, l.curedAt...) && (a.held != nil || a.near(wait))
	}},
}

// liveDays are days in a cluster of 20 nodes. Things go wrong, each day on other nodes and at other
// seconds. No look at Alertmanager is at any of these seconds.
func liveDays(days int) func(l *live) {
	return func(l *live) {
		for day := range days {
			liveDay(l, day)
		}
	}
}

func liveDay(l *live, day int) {
	const silent, sick = corev1.ConditionUnknown, corev1.ConditionFalse
	when := func(hour, minute int) time.Time {
		return at(24*day+hour, minute).Add(time.Duration(7+15*(day%4)+day%5) * time.Second)
	}
	node := func(i int) string { return fmt.Sprintf("n%02d", (i+3*day)%20) }
	l.ill(node(16), silent, when(7, 0), when(8, 40)) // the window opens at 8:00
	for i := range 5 {                               // it flaps, and its alert with it
		l.ill(node(2), sick, when(9, 12*i), when(9, 12*i+9))
	}
	l.ill(node(1), silent, when(10, 0), when(10, 12)) // it recovers by itself
	l.cures(node(17), when(11, 0), when(12, 0))
	l.ill(node(17), silent, when(11, 0), when(11, 50)) // a reboot cures it, and frees the only slot for the next one
	l.ill(node(18), sick, when(11, 0), when(11, 40))
	l.ill(node(4), silent, when(12, 0), when(13, 0)) // it runs out of steps
	l.ill(node(4), silent, when(16, 5), when(16, 35))
	l.silence(node(19), when(13, 5), when(13, 50)) // while no breaker waits for how a repair ends: the replay makes one here
	l.ill(node(19), silent, when(13, 10), when(13, 40))
	for i := 5; i < 13; i++ { // a storm
		l.ill(node(i), sick, when(14, 0), when(14, 30))
	}
	l.ill(node(14), silent, when(14, 10), when(15, 10)) // it outlasts the storm, and waits for the breaker
	l.ill(node(3), sick, when(16, 40), when(18, 0))     // the window closes at 17:00
	l.ill(node(15), silent, when(18, 0), when(19, 0))
}

// lived is what Drydock did in a cluster of 20 nodes until then, where that happened.
func lived(t *testing.T, o Options, until time.Time, happens func(*live), change func(*live, *engine.Options)) (l *live) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(midnight))
		var nodes []*corev1.Node
		for i := range 20 {
			n := nodeAt(fmt.Sprintf("n%02d", i), corev1.ConditionTrue, midnight.Add(-time.Hour))
			n.Annotations, n.Labels, n.Status.NodeInfo.BootID = map[string]string{}, map[string]string{}, "first-"+n.Name
			nodes = append(nodes, n)
		}
		l = newLiveWith(t, o.Config, o.PollInterval, change, nodes...)
		happens(l)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.engine.Start(ctx) }()
		time.Sleep(time.Until(until))
		stop()
		require.NoError(t, <-ended)
		synctest.Wait()
	})
	return l
}

// minute says a call as it is compared.
func (c call) minute() string {
	return fmt.Sprintf("%s %s %s", c.node, c.step, c.at.UTC().Format("15:04"))
}

// replayed are the calls that a replay makes, and what holds each node in it.
func replayed(t *testing.T, o Options, moments []history.Moment, until time.Time) (calls []call, holds timeline) {
	t.Helper()
	r := New(o, midnight)
	holds = timeline{}
	r.decided = func(node string, d lifecycle.Decision) { holds.decided(r.now, node, d) }
	for _, m := range moments {
		require.NoError(t, r.Feed(t.Context(), m))
	}
	require.NoError(t, r.Until(t.Context(), until))
	r.Finish(until)
	for _, one := range r.story.repairs {
		for _, s := range one.Steps {
			calls = append(calls, call{one.Node, s.Name, s.At})
		}
	}
	return calls, holds
}

// differences are the calls that only one of the two made, and the times when the two held a node
// for different reasons: those of a known cause, and the others.
func (l *live) differences(calls []call, holds timeline, until time.Time) (explained, unexplained []string) {
	judge := func(said string, a apart) {
		known := slices.IndexFunc(causes, func(is cause) bool { return is.of(l, a) })
		if known < 0 {
			unexplained = append(unexplained, said)
			return
		}
		explained = append(explained, said+": "+causes[known].said)
	}
	differ := func(who string, these, those []call) {
		for _, c := range these {
			if !slices.ContainsFunc(those, func(o call) bool { return o.minute() == c.minute() }) {
				judge(who+c.minute(), apart{call: c, others: those})
			}
		}
	}
	differ("live alone: ", l.calls, calls)
	differ("replayed alone: ", calls, l.calls)
	for _, h := range l.holds.heldOtherwise(holds, until) {
		from, until := h.from.Format(time.DateTime), h.until.Format(time.DateTime)
		said := fmt.Sprintf("%s from %s until %s: live %q, replayed %q", h.node, from, until, h.live, h.replayed)
		judge(said, apart{call: call{node: h.node, at: h.from}, held: &h})
	}
	return explained, unexplained
}

// TestTheReplayDecidesAsDrydockDidLive, call for call and hold for hold. With another
// configuration, or if each step cures, it does not.
func TestTheReplayDecidesAsDrydockDidLive(t *testing.T) {
	t.Parallel()
	o := optionsOf(t, dayConfig)
	until := at(24, 0)
	l := lived(t, o, until, liveDays(1), func(*live, *engine.Options) {})
	moments := l.recorded.moments()
	calls, holds := replayed(t, o, moments, until)
	explained, unexplained := l.differences(calls, holds, until)
	t.Log(strings.Join(explained, "\n"))
	require.Empty(t, unexplained)
	held := slices.Concat(slices.Collect(maps.Values(l.holds))...)
	for _, r := range []remediations.Reason{
		remediations.ReasonTooYoung, remediations.ReasonFleetUnhealthy, remediations.ReasonOutsideWindow, remediations.ReasonAtLimit,
		remediations.ReasonSilenced,
	} {
		byIt := func(s span) bool { return strings.HasPrefix(s.hold, string(r)+" ") }
		require.True(t, slices.ContainsFunc(held, byIt), "%s never held live", r)
	}
	for _, node := range []string{"n01", "n02", "n03", "n04", "n14", "n16", "n17", "n18"} {
		require.True(t, slices.ContainsFunc(l.calls, func(c call) bool { return c.node == node }), "%s was never repaired", node)
	}
	for _, cause := range causes {
		if !strings.HasPrefix(cause.said, "A breaker records to the minute when the fleet became calm") { // it needs a policy without witness: TestEachNamedCauseMakesADifference
			require.Contains(t, strings.Join(explained, "\n"), cause.said, "a cause of nothing")
		}
		require.Contains(t, assumptions(o), cause.said, "the report says it")
	}
	configured := func(was, is string) Options {
		require.Contains(t, dayConfig, was)
		return optionsOf(t, strings.Replace(dayConfig, was, is, 1))
	}
	cured := o
	cured.Curing = true
	for name, other := range map[string]Options{
		"a breaker that never opens": configured("unhealthy: 20%", "unhealthy: 90%"),
		"no window":                  configured("windows:", "# windows:"),
		"two at once":                configured("concurrent: 1", "concurrent: 2"),
		"another plan":               configured("attempts: 2", "attempts: 1"),
		"steps that cure":            cured,
	} {
		calls, holds := replayed(t, other, moments, until)
		_, unexplained := l.differences(calls, holds, until)
		require.NotEmpty(t, unexplained, name)
		_, unexplained = l.differences(calls, l.holds, until)
		require.NotEmpty(t, unexplained, "%s, by its calls alone", name)
		if slices.Contains([]string{"a breaker that never opens", "no window", "two at once"}, name) { // the others hold for the same reasons
			_, unexplained = l.differences(l.calls, holds, until)
			require.NotEmpty(t, unexplained, "%s, by its holds alone", name)
		}
	}
}

// TestTheReplayOfAMonthDecidesAsDrydockDidLive, call for call and hold for hold: no difference
// without a named cause.
func TestTheReplayOfAMonthDecidesAsDrydockDidLive(t *testing.T) {
	t.Parallel()
	const days = 30
	o := optionsOf(t, dayConfig)
	until := at(24*days, 0)
	l := lived(t, o, until, liveDays(days), func(*live, *engine.Options) {})
	calls, holds := replayed(t, o, l.recorded.moments(), until)
	explained, unexplained := l.differences(calls, holds, until)
	t.Logf("%d calls live, %d replayed, %d differences of a known cause", len(l.calls), len(calls), len(explained))
	require.Empty(t, unexplained, strings.Join(unexplained, "\n"))
	require.Greater(t, len(l.calls), 10*days)
	alone := 0
	for _, said := range explained {
		if strings.HasPrefix(said, "live alone: ") {
			alone++
		}
	}
	require.Less(t, alone, len(l.calls)/2, "most calls are the same")
}
