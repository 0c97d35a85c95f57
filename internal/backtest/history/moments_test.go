package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

// unready fires two minutes after a Node has stopped being Ready, and for one minute after it is
// Ready again.
const unready = `
groups:
- name: unready
  interval: 30s
  rules:
  - alert: Unready
    expr: kube_node_status_condition{condition="Ready",status="true"} == 0
    for: 2m
    keep_firing_for: 1m
    labels: {severity: critical}
    annotations: {summary: "{{ $labels.node }} is not Ready"}
`

// day is a day with Nodes that flap, come and go, and kube-state-metrics is down for ten minutes.
func day(t testing.TB, hours float64) *Recording {
	r := New(t)
	Every(0, hours*60, func(when time.Time, minutes float64) {
		if minutes >= 100 && minutes < 110 {
			r.Scrape(when, "a", nil)
			return
		}
		r.Scrape(when, "a", KubeStateMetrics("a", machinesAt(minutes)...))
	})
	return r
}

func machinesAt(minutes float64) []Machine {
	machines := []Machine{{Name: "one"}, {Name: "two"}}
	if int(minutes)%50 > 35 {
		machines[0].Ready = "unknown"
	}
	if int(minutes)%70 > 60 {
		machines[1].Ready = "false"
	}
	if int(minutes)%90 > 45 {
		machines = append(machines, Machine{Name: "three"})
	}
	return machines
}

func text(t testing.TB, of any) string {
	t.Helper()
	out, err := json.MarshalIndent(of, "", " ")
	require.NoError(t, err)
	return string(out)
}

func TestAnAlertIsAsPrometheusSendsIt(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(0, 60, func(when time.Time, minutes float64) {
		m := Machine{Name: "one"}
		if minutes >= 20 && minutes < 30 {
			m.Ready = "unknown"
		}
		r.Scrape(when, "a", KubeStateMetrics("a", m))
	})
	past := pastOf(t, r, history.Options{
		Rules: rulesOf(t, unready), ExternalLabels: model.LabelSet{"cluster": "prod"},
	})
	var alerts []history.Alert
	for _, m := range moments(t, past, 10, 60) {
		alerts = append(alerts, m.Alerts...)
	}
	require.Len(t, alerts, 2)
	began, ended := alerts[0], alerts[1]
	require.Equal(t, model.LabelValue("prod"), began.Labels["cluster"], "an external label")
	require.Equal(t, model.LabelValue("critical"), began.Labels["severity"], "an alert's own label counts more")
	require.Equal(t, model.LabelValue("one"), began.Labels["node"])
	require.WithinRange(t, began.StartsAt, At(22), At(23))
	require.True(t, began.EndsAt.IsZero())
	require.Equal(t, began.StartsAt, ended.StartsAt)
	require.WithinRange(t, ended.EndsAt, At(31), At(32), "keep_firing_for")
}

func TestTheSameDataGivesTheSameMoments(t *testing.T) {
	t.Parallel()
	r := day(t, 6)
	url := r.Serve()
	o := history.Options{Rules: rulesOf(t, unready)}
	once := moments(t, open(t, url, o), 60, 350)
	require.Greater(t, len(once), 30)
	again := open(t, url, o)
	require.Equal(t, text(t, once), text(t, moments(t, again, 60, 350)))
	require.Equal(t, text(t, once), text(t, moments(t, again, 60, 350)), "a Past that begins anew")
}

func TestAnAlertThatChangesDuringAGapIsReportedAtItsEnd(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(0, 60, func(when time.Time, minutes float64) {
		if minutes >= 20 && minutes < 30 {
			r.Scrape(when, "a", nil)
			return
		}
		m := Machine{Name: "one"}
		if minutes >= 15 && minutes < 20 {
			m.Ready = "unknown"
		}
		r.Scrape(when, "a", KubeStateMetrics("a", m))
	})
	var ended []history.Moment
	for _, m := range moments(t, pastOf(t, r, history.Options{Rules: rulesOf(t, unready)}), 10, 60) {
		require.False(t, m.At.After(At(20)) && m.At.Before(At(30)), "a moment inside the gap")
		if len(m.Alerts) > 0 && !m.Alerts[0].EndsAt.IsZero() {
			ended = append(ended, m)
		}
	}
	require.Len(t, ended, 1)
	require.Equal(t, At(30), ended[0].At)
	require.WithinRange(t, ended[0].Alerts[0].EndsAt, At(20), At(30))
}

func TestRecordedAlertsAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	r := New(t)
	firing := map[string]float64{`ALERTS{alertname="Unready",alertstate="firing",node="one"}`: 1}
	Every(0, 60, func(when time.Time, minutes float64) {
		r.Scrape(when, "a", KubeStateMetrics("a", Machine{Name: "one"}))
		shows := map[string]float64{}
		if minutes >= 20 && minutes < 30 {
			shows = firing
		}
		if minutes >= 40 {
			shows = map[string]float64{`ALERTS{alertname="Unready",alertstate="pending",node="one"}`: 1}
		}
		r.Scrape(when, "rules", shows)
	})
	got := moments(t, pastOf(t, r, history.Options{Recorded: true, ExternalLabels: model.LabelSet{"cluster": "prod"}}), 10, 60)
	require.Len(t, got, 3)
	labels := model.LabelSet{"alertname": "Unready", "node": "one", "cluster": "prod"}
	require.Equal(t, []history.Alert{{Labels: labels, StartsAt: At(20)}}, got[1].Alerts)
	require.Equal(t, []history.Alert{{Labels: labels, StartsAt: At(20), EndsAt: At(30)}}, got[2].Alerts)
}

// An alert that fires when the reading begins says since when it fires, and not since another time
// before. One that ended since, and came again, is another one.
func TestARecordedAlertKeepsItsStartTime(t *testing.T) {
	t.Parallel()
	type span struct{ from, until float64 } // in minutes
	for name, c := range map[string]struct {
		fires []span
		hole  span      // nothing was recorded
		since []float64 // of what fires at 900, and begins until 940
	}{
		"a long time":                            {fires: []span{{35, 1000}}, since: []float64{35}},
		"a hole shorter than the lookback":       {fires: []span{{35, 1000}}, hole: span{460, 464}, since: []float64{35}},
		"a hole within the lookback":             {fires: []span{{35, 1000}}, hole: span{894.5, 896}, since: []float64{35}},
		"what was before a longer hole":          {fires: []span{{35, 1000}}, hole: span{460, 466}, since: []float64{466}},
		"it began within the lookback":           {fires: []span{{897, 1000}}, since: []float64{897}},
		"another one ended within the lookback":  {fires: []span{{35, 896}, {898, 1000}}, since: []float64{898}},
		"a longer hole within the lookback":      {fires: []span{{35, 1000}}, hole: span{889, 896}, since: []float64{896}},
		"another one ended with the lookback":    {fires: []span{{35, 895}, {896, 1000}}, since: []float64{896}},
		"another one ended just before it":       {fires: []span{{35, 893}, {894, 1000}}, since: []float64{894}},
		"it ends while it is read":               {fires: []span{{35, 905}}, since: []float64{35}},
		"it comes again":                         {fires: []span{{35, 905}, {920, 930}, {935, 1000}}, since: []float64{35, 920, 935}},
		"it came again before":                   {fires: []span{{896, 897}, {898, 905}, {920, 1000}}, since: []float64{898, 920}},
		"it came within the lookback, and again": {fires: []span{{897, 905}, {920, 1000}}, since: []float64{897, 920}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := New(t)
			Every(0, 1000, func(when time.Time, minutes float64) {
				if minutes >= c.hole.from && minutes < c.hole.until {
					return
				}
				r.Scrape(when, "a", KubeStateMetrics("a", Machine{Name: "one"}))
				shows := map[string]float64{}
				for _, fires := range append(c.fires, span{0, 10}) {
					if minutes >= fires.from && minutes < fires.until {
						shows[`ALERTS{alertname="Unready",alertstate="firing",node="one"}`] = 1
					}
				}
				r.Scrape(when, "rules", shows)
			})
			var want, got []history.Alert
			labels := model.LabelSet{"alertname": "Unready", "node": "one"}
			for i, since := range c.since {
				a := history.Alert{Labels: labels, StartsAt: At(since)}
				want = append(want, a)
				if until := c.fires[len(c.fires)-len(c.since)+i].until; until < 940 {
					a.EndsAt = At(until)
					want = append(want, a)
				}
			}
			for _, m := range moments(t, pastOf(t, r, history.Options{Recorded: true}), 900, 940) {
				got = append(got, m.Alerts...)
			}
			require.Equal(t, want, got)
		})
	}
}

func TestWhatIsMissingOrFailsIsNamed(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(0, 60, func(when time.Time, minutes float64) {
		shows := KubeStateMetrics("a", Machine{Name: "one"})
		maps.DeleteFunc(shows, func(name string, _ float64) bool {
			return Series(t, name).Get(model.MetricNameLabel) == "kube_node_labels"
		})
		r.Scrape(when, "a", shows)
	})
	past := pastOf(t, r, history.Options{Rules: rulesOf(t, `
groups:
- name: odd
  interval: 30s
  rules:
  - {alert: Absent, expr: no_such_metric > 0}
  - {alert: Twice, expr: 'label_replace(kube_node_status_condition, "status", "", "", "")'}
`)})
	moments(t, past, 10, 60)
	found := map[string]history.Skip{}
	for _, s := range past.Skipped() {
		found[s.What] = s
	}
	require.Equal(t, []string{"kube_node_labels", "no_such_metric", "rule Twice"}, slices.Sorted(maps.Keys(found)))
	require.Contains(t, found["no_such_metric"].Why, "Absent")
	require.NotEmpty(t, found["rule Twice"].Why)
	require.True(t, found["rule Twice"].Until.After(At(59)))
}

// TestProgressIsOfTheTimeThatWasAskedFor: what is read before that time, for the states of rules,
// does not count.
func TestProgressIsOfTheTimeThatWasAskedFor(t *testing.T) {
	t.Parallel()
	var reported []time.Duration
	past := pastOf(t, day(t, 8), history.Options{Rules: rulesOf(t, strings.Replace(unready, "for: 2m", "for: 3h", 1)), Progress: func(done, all time.Duration) {
		require.Equal(t, 5*time.Hour, all)
		reported = append(reported, done.Round(time.Minute))
	}})
	past.ReadAtOnce(2 * time.Hour)
	moments(t, past, 2*60, 7*60)
	require.True(t, slices.IsSorted(reported), "%v", reported)
	require.Equal(t, []time.Duration{0, 2 * time.Hour, 4 * time.Hour, 5 * time.Hour}, slices.Compact(reported))
}

func TestAnErrorOfTheConsumerEndsTheReading(t *testing.T) {
	t.Parallel()
	past := pastOf(t, day(t, 6), history.Options{Rules: rulesOf(t, unready)})
	enough, calls := errors.New("enough"), 0
	err := past.Moments(context.Background(), At(60), At(350), func(history.Moment) error {
		calls++
		return enough
	})
	require.ErrorIs(t, err, enough)
	require.Equal(t, 1, calls)
	require.Greater(t, len(moments(t, past, 60, 350)), 30, "the next call begins anew")
}

func TestRulesOfManifestsAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("plain.yaml", quiet)
	write("manifest.yml", `
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: one}
spec:
  groups:
  - {name: one, partial_response_strategy: warn, rules: [{alert: One, expr: vector(1)}]}
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: two}
spec:
  groups: [{name: two, rules: [{alert: Two, expr: vector(1)}]}]
`)
	read, err := history.ReadRules(dir)
	require.NoError(t, err)
	require.Len(t, read, 2)
	r := New(t)
	Every(0, 20, func(when time.Time, _ float64) { r.Scrape(when, "a", KubeStateMetrics("a", Machine{Name: "one"})) })
	first := moments(t, pastOf(t, r, history.Options{Rules: read}), 10, 20)[0]
	require.Len(t, first.Alerts, 2)

	write("other.yaml", "kind: ConfigMap\n")
	_, err = history.ReadRules(dir)
	require.ErrorContains(t, err, "other.yaml")
	require.ErrorContains(t, err, "ConfigMap")
	_, err = history.ReadRules(t.TempDir())
	require.ErrorContains(t, err, "has no file *.yaml or *.yml")
}
