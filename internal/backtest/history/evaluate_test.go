package history_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

const rulesFolder = "../../../rules"

// ruleTest is a test of rules for promtool.
type ruleTest struct {
	Files    []string       `yaml:"rule_files"`
	Interval model.Duration `yaml:"evaluation_interval"`
	Tests    []struct {
		Name     string
		Interval model.Duration
		Series   []struct{ Series, Values string } `yaml:"input_series"`
		Alerts   []struct {
			At       model.Duration `yaml:"eval_time"`
			Name     string         `yaml:"alertname"`
			Expected []struct {
				Labels model.LabelSet `yaml:"exp_labels"`
			} `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

// The tests of the shipped rules pass in promtool. They must pass here: `for`, keep_firing_for and
// labels are then as in Prometheus. Rules that read ALERTS are left out: they read what a
// Prometheus recorded, and here none did.
func TestTheRulesFireAsInPromtool(t *testing.T) {
	t.Parallel()
	tests, err := filepath.Glob(filepath.Join(rulesFolder, "tests", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, tests)
	compared, fired := 0, 0
	for _, path := range tests {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var file ruleTest
		require.NoError(t, yaml.Unmarshal(text, &file), path)
		var files []history.RuleFile
		for _, name := range file.Files {
			read, err := history.ReadRules(filepath.Join(filepath.Dir(path), name))
			require.NoError(t, err)
			files = append(files, read...)
		}
		if readsAlerts(files) {
			continue
		}
		for i, test := range file.Tests {
			if testing.Short() && i%4 != 0 {
				continue
			}
			r := New(t)
			for _, s := range test.Series {
				lset, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(s.Series + " " + s.Values)
				require.NoError(t, err, "%s: %s", path, test.Name)
				for n, v := range values {
					if !v.Omitted {
						r.Add(lset.String(), time.UnixMilli(0).Add(time.Duration(n)*time.Duration(test.Interval)), v.Value)
					}
				}
			}
			if len(test.Series) == 0 {
				r.Add("nothing", time.UnixMilli(0), 0)
			}
			type alertAt struct {
				at time.Time
				history.Alert
			}
			var all []alertAt
			last := time.Duration(0)
			for _, want := range test.Alerts {
				last = max(last, time.Duration(want.At))
			}
			past := open(t, r.Serve(), history.Options{Rules: files, Interval: time.Duration(file.Interval)})
			require.NoError(t, past.Evaluated(t.Context(), time.UnixMilli(0), time.UnixMilli(1).Add(last), func(at time.Time, a history.Alert) {
				all = append(all, alertAt{at, a})
			}))
			for _, want := range test.Alerts {
				firing := map[string]history.Alert{}
				for _, a := range all {
					if a.at.After(time.UnixMilli(0).Add(time.Duration(want.At))) || string(a.Labels["alertname"]) != want.Name {
						continue
					}
					firing[a.Labels.String()] = a.Alert
					if !a.EndsAt.IsZero() {
						delete(firing, a.Labels.String())
					}
				}
				expected, got := map[string]bool{}, map[string]bool{}
				for _, e := range want.Expected {
					expected[e.Labels.Merge(model.LabelSet{"alertname": model.LabelValue(want.Name)}).String()] = true
				}
				for key := range firing {
					got[key] = true
				}
				require.Equal(t, expected, got, "%s: %s: %s", path, test.Name, want.At)
				compared, fired = compared+1, fired+len(got)
			}
		}
	}
	require.Greater(t, compared, 100)
	require.Greater(t, fired, 40)
}

func readsAlerts(files []history.RuleFile) bool {
	return slices.ContainsFunc(files, func(f history.RuleFile) bool { return bytes.Contains(f.Text, []byte("ALERTS{")) })
}
