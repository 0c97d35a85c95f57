package backtest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// grouping has one group of all alerts that have the same name, and short names: s inhibits t, and
// b both sides of the other rule.
const grouping = `
route:
  receiver: drydock
  group_by: [alertname]
  group_wait: 30s
  group_interval: 5m
  repeat_interval: 1h
inhibit_rules:
- {source_matchers: ['one="s"'], target_matchers: ['one="t"'], equal: [zone]}
- {source_matchers: ['one=~"b.*"'], target_matchers: ['one=~"b.*|t"'], equal: [zone]}
`

// TestPostsFollowAlertmanagersRules: the rules of its documentation on group_wait,
// group_interval, repeat_interval and inhibition, and of its code where that says more
// (notify/dedup_stage.go and dispatch/dispatch.go of version 0.34), at their very instants. An
// alert is written as its group and its own name. "+" begins it, "-" ends it. A post has "+" for an
// alert that fires and "-" for one that has ended.
func TestPostsFollowAlertmanagersRules(t *testing.T) {
	t.Parallel()
	for name, scene := range map[string]struct{ happens, posts []string }{
		"the first waits for group_wait, and takes with it what begins meanwhile": {
			[]string{"0s +g/a", "10s +g/c", "2m +h/a"},
			[]string{"30s g +a +c", "2m30s h +a"},
		},
		"what begins later waits for the next interval, and the others are said again": {
			[]string{"0s +g/a", "31s +g/c"},
			[]string{"30s g +a", "5m30s g +a +c"},
		},
		"what begins at the instant of a post goes with it": {
			[]string{"0s +g/a", "30s +g/c"},
			[]string{"30s g +a +c"},
		},
		"an end is posted at the next interval; then the group is new": {
			[]string{"0s +g/a", "2m -g/a", "6m +g/a"},
			[]string{"30s g +a", "5m30s g -a", "6m30s g +a"},
		},
		"what ends before group_wait is over is never posted": {
			[]string{"0s +g/a", "29s -g/a", "40s +g/c"},
			[]string{"1m10s g +c"},
		},
		"what comes and goes within an interval is posted as over, where others fire": {
			[]string{"0s +g/a", "1m +g/c", "2m -g/c"},
			[]string{"30s g +a", "5m30s g +a -c"},
		},
		"what comes back within an interval was never away": {
			[]string{"0s +g/a", "1m -g/a", "2m +g/a"},
			[]string{"30s g +a"},
		},
		"nothing new is posted again after more than repeat_interval": {
			[]string{"0s +g/a", "90m -g/a"},
			[]string{"30s g +a", "1h5m30s g +a", "1h30m30s g -a"},
		},
		"each post begins repeat_interval anew": {
			[]string{"0s +g/a", "55m +g/c", "100m -g/c", "101m -g/a"},
			[]string{"30s g +a", "55m30s g +a +c", "1h40m30s g +a -c", "1h45m30s g -a"},
		},
		"an alert that is older than group_wait does not wait": {
			[]string{"1h +g/a since 30m", "1h10m -g/a"},
			[]string{"1h0m0s g +a", "1h10m0s g -a"},
		},
		"an inhibited alert is not posted, and is at the next interval after its inhibition": {
			[]string{"0s +s/s", "1s +g/t", "7m -s/s", "20m -g/t"},
			[]string{"30s s +s", "10m30s s -s", "10m31s g +t", "20m31s g -t"},
		},
		"without equal labels nothing is inhibited": {
			[]string{"0s +s/s", "1s +g/t in b"},
			[]string{"30s s +s", "31s g +t"},
		},
		"an alert that both sides match inhibits others, and none that both match": {
			[]string{"0s +g/b1", "0s +h/b2", "1s +i/t"},
			[]string{"30s g +b1", "30s h +b2"},
		},
		// The rest is not posted to Drydock, which sees it only when it looks.
		"the end of an alert that is inhibited then is not posted, nor what fires of it again before repeat_interval": {
			[]string{"0s +g/t", "1m +s/s", "2m -g/t", "8m -s/s", "12m +g/t", "80m -g/t"},
			[]string{"30s g +t", "1m30s s +s", "11m30s s -s", "1h2m30s g +t", "1h22m30s g -t"},
		},
		"an alert that was posted and is inhibited for a while is not posted again": {
			[]string{"0s +g/t", "1m +s/s", "12m -s/s", "40m -g/t"},
			[]string{"30s g +t", "1m30s s +s", "16m30s s -s", "40m30s g -t"},
		},
		"where others of its group were posted meanwhile, it is": {
			[]string{"0s +g/t", "0s +g/a", "1m +s/s", "2m +g/c", "12m -s/s"},
			[]string{"30s g +a +t", "1m30s s +s", "5m30s g +a +c", "15m30s g +a +c +t", "16m30s s -s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, scene.posts, postsOf(t, grouping, scene.happens))
		})
	}
}

// postsOf are the posts of what happens, until 25 minutes after the last of it. "10m +g/a since 5m
// in z" is an alert that began earlier, in a zone.
func postsOf(t *testing.T, config string, happens []string) []string {
	t.Helper()
	routing, err := ReadRouting([]byte(config))
	require.NoError(t, err)
	a := newAlertmanager(routing, &remediations.Config{}, nil, 0)
	length := func(s string) time.Duration {
		d, err := time.ParseDuration(s)
		require.NoError(t, err)
		return d
	}
	var out []string
	flush := func(now time.Duration) {
		posts := map[string][]string{}
		a.post(midnight.Add(now), func(f *firing, status string) {
			sign := map[string]string{remediations.StatusFiring: "+", remediations.StatusResolved: "-"}[status]
			posts[f.labels["alertname"]] = append(posts[f.labels["alertname"]], sign+f.labels["one"])
		})
		for _, group := range slices.Sorted(maps.Keys(posts)) {
			slices.SortFunc(posts[group], func(a, b string) int { return cmp.Compare(a[1:], b[1:]) })
			out = append(out, strings.Join(append([]string{now.String(), group}, posts[group]...), " "))
		}
	}
	until := func(end time.Duration) {
		for at := a.due(); !at.IsZero() && at.Sub(midnight) < end; at = a.due() {
			flush(at.Sub(midnight))
		}
	}
	for _, one := range happens {
		words := strings.Fields(one)
		now := length(words[0])
		until(now)
		group, own, _ := strings.Cut(words[1][1:], "/")
		labels := map[string]string{"alertname": group, "one": own, "zone": "a"}
		f := &firing{labels: labels, startsAt: midnight.Add(now), set: model.LabelSet{}}
		for i, word := range words[2:] {
			switch word {
			case "since":
				f.startsAt = midnight.Add(length(words[i+3]))
			case "in":
				labels["zone"] = words[i+3]
			}
		}
		for name, value := range labels {
			f.set[model.LabelName(name)] = model.LabelValue(value)
		}
		if f.fingerprint = remediations.Fingerprint(labels); words[1][0] == '+' {
			a.begin(f, midnight.Add(now))
		} else {
			a.end(f.fingerprint)
		}
	}
	until(length(strings.Fields(happens[len(happens)-1])[0]) + 25*time.Minute)
	return out
}

// TestTimeIntervalsAreNamed: a backtest does not apply them, and its report says so.
func TestTimeIntervalsAreNamed(t *testing.T) {
	t.Parallel()
	const said = "The time intervals of Alertmanager's routes mute no alert: nights, workdays."
	for text, named := range map[string]bool{
		"route: {receiver: drydock, routes: [{mute_time_intervals: [nights]}, {active_time_intervals: [workdays, nights]}]}": true,
		"route: {receiver: drydock, routes: [{}, {}]}": false,
	} {
		o := optionsOf(t, dayConfig)
		routing, err := ReadRouting([]byte(text))
		require.NoError(t, err)
		o.Alertmanager = routing
		require.Equal(t, named, slices.Contains(assumptions(o), said))
	}
}
