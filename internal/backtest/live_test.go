package backtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// cause explains a call that only one of the two made; others are those of the other one. The report says it.
type cause struct {
	said string
	of   func(l *live, c call, others []call) bool
}

// causes are why the replay of a time may make another call than Drydock made in it, or make one at another minute. There are no
// others.
var causes = []cause{
	{"Silences, approvals and pauses of the past are not in the record: there are none.", func(l *live, c call, _ []call) bool {
		return l.silenced[c.node]
	}},
	{"A cordon in the record counts as a person's, also one that Drydock set.", func(l *live, c call, _ []call) bool {
		cordoned := l.cordonedAt[c.node]
		return !cordoned.IsZero() && c.at.After(cordoned) && c.at.Sub(cordoned) < 30*time.Minute
	}},
	{"A breaker keeps the end of a storm to the minute: a call after it may come a minute sooner or later.", func(l *live, c call, others []call) bool {
		return l.stormed[c.node] && slices.ContainsFunc(others, func(o call) bool {
			return o.node == c.node && o.step == c.step && c.at.Sub(o.at).Abs() <= time.Minute
		})
	}},
	{"The record has no boot IDs: a reboot that cured is not told from a recovery, and keeps its slot for all of its wait.", func(l *live, c call, others []call) bool {
		const wait = 10 * time.Minute // of the policy's step; the repair that waited for the slot has two
		return slices.ContainsFunc(l.curedAt, func(cured time.Time) bool {
			return c.at.After(cured) && c.at.Sub(cured) < 2*wait
		}) && slices.ContainsFunc(others, func(o call) bool {
			return o.node == c.node && o.step == c.step && c.at.Sub(o.at).Abs() < wait
		})
	}},
}

// liveDay is a day in a cluster of 20 nodes in which things go wrong, at the seventh second: no look at Alertmanager is then.
func liveDay(l *live) {
	const silent, sick = corev1.ConditionUnknown, corev1.ConditionFalse
	when := func(hour, minute int) time.Time { return at(hour, minute).Add(7 * time.Second) }
	l.ill("n16", silent, when(7, 0), when(8, 40)) // the window opens at 8:00
	for i := range 5 {                            // it flaps, and its alert with it
		l.ill("n02", sick, when(9, 12*i), when(9, 12*i+9))
	}
	l.ill("n01", silent, when(10, 0), when(10, 12)) // it recovers by itself
	l.curable["n17"] = true
	l.ill("n17", silent, when(11, 0), when(11, 50)) // a reboot cures it, and frees the only slot for the next one
	l.ill("n18", sick, when(11, 0), when(11, 40))
	l.ill("n04", silent, when(12, 0), when(13, 0)) // it runs out of steps
	l.ill("n04", silent, when(16, 5), when(16, 35))
	for i := 5; i < 13; i++ { // a storm
		l.ill(fmt.Sprintf("n%02d", i), sick, when(14, 0), when(14, 30))
	}
	l.ill("n14", silent, when(14, 10), when(15, 10)) // it outlasts the storm, and waits for the breaker
	l.silenced["n19"] = true
	l.ill("n19", silent, when(15, 20), when(15, 50))
	l.ill("n03", sick, when(16, 40), when(18, 0)) // the window closes at 17:00
	l.ill("n15", silent, when(18, 0), when(19, 0))
}

// lived is what Drydock did in such a day.
func lived(t *testing.T, o Options) (l *live) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(midnight))
		var nodes []*corev1.Node
		for i := range 20 {
			n := nodeAt(fmt.Sprintf("n%02d", i), corev1.ConditionTrue, midnight.Add(-time.Hour))
			n.Annotations, n.Labels, n.Status.NodeInfo.BootID = map[string]string{}, map[string]string{}, "first"
			nodes = append(nodes, n)
		}
		l = newLive(t, o.Config, o.PollInterval, nodes...)
		liveDay(l)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.engine.Start(ctx) }()
		time.Sleep(time.Until(at(24, 0)))
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

// callsOf are the calls that the replay makes.
func callsOf(r *Replay) (out []call) {
	for _, one := range r.story.repairs {
		for _, s := range one.Steps {
			out = append(out, call{one.Node, s.Name, s.At})
		}
	}
	return out
}

// differences are the calls that only one of the two made: those of a known cause, and the others.
func (l *live) differences(replayed []call) (explained, unexplained []string) {
	differ := func(who string, these, those []call) {
		for _, c := range these {
			if slices.ContainsFunc(those, func(o call) bool { return o.minute() == c.minute() }) {
				continue
			}
			known := slices.IndexFunc(causes, func(is cause) bool { return is.of(l, c, those) })
			if known < 0 {
				unexplained = append(unexplained, who+c.minute())
				continue
			}
			explained = append(explained, who+c.minute()+": "+causes[known].said)
		}
	}
	differ("live alone: ", l.calls, replayed)
	differ("replayed alone: ", replayed, l.calls)
	return explained, unexplained
}

// TestTheReplayDecidesAsDrydockDidLive, call for call. With another configuration, or if each step cures, it does not.
func TestTheReplayDecidesAsDrydockDidLive(t *testing.T) {
	t.Parallel()
	o := optionsOf(t, dayConfig)
	l := lived(t, o)
	moments := l.recorded.moments()
	explained, unexplained := l.differences(callsOf(replay(t, o, moments, midnight, at(24, 0))))
	t.Log(strings.Join(explained, "\n"))
	require.Empty(t, unexplained)
	for _, node := range []string{"n01", "n02", "n03", "n04", "n14", "n16", "n17", "n18"} {
		require.True(t, slices.ContainsFunc(l.calls, func(c call) bool { return c.node == node }), "%s was never repaired", node)
	}
	for _, cause := range causes {
		require.Contains(t, strings.Join(explained, "\n"), cause.said, "a cause of nothing")
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
		_, unexplained := l.differences(callsOf(replay(t, other, moments, midnight, at(24, 0))))
		require.NotEmpty(t, unexplained, name)
	}
}
