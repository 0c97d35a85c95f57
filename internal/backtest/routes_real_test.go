package backtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"drydock.dev/drydock/internal/lab/programs"
	"drydock.dev/drydock/remediations"
)

// labelValues are what the labels of alerts and of matchers are made of.
var labelValues = map[string][]string{"alertname": {"A", "B", "C"}, "node": {"n1", "n2"}, "severity": {"critical", "warning"}, "zone": {""}}

// TestRoutesGroupsAndInhibitionsAreAlertmanagersOwn: for any routes, rules and alerts, a real
// Alertmanager and the backtest give the same receivers, groups and inhibitions.
func TestRoutesGroupsAndInhibitionsAreAlertmanagersOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Alertmanager")
	}
	server := startAlertmanager(t)
	same := func(t require.TestingT, text []byte, routing *Routing, fired []model.LabelSet) (want []string) {
		want = saidByBacktest(routing, fired)
		server.restartWith(t, text, fired)
		var got []string
		for until := time.Now().Add(10 * time.Second); !slices.Equal(want, got) && time.Now().Before(until); {
			var err error
			got, err = server.says()
			require.NoError(t, err)
		}
		require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"), string(text))
		return want
	}
	const known = `
receivers: [{name: r0}, {name: r1}]
route: {receiver: r0, group_by: [zone], routes: [{matchers: [alertname="A"], receiver: r1, continue: true}, {matchers: [node="n1"], group_by: [node]}]}
inhibit_rules: [{source_matchers: [severity="critical"], target_matchers: [severity="warning"], equal: [node]}]
`
	routing, err := ReadRouting([]byte(known))
	require.NoError(t, err)
	require.Len(t, same(t, []byte(known), routing, []model.LabelSet{
		{"alertname": "A", "node": "n1", "severity": "critical"}, {"alertname": "B", "node": "n1", "severity": "warning"}, {"alertname": "C", "node": "n2", "severity": "warning"},
	}), 4, "r1 has a group, r0 has two, and one alert is inhibited")
	rapid.Check(t, func(rt *rapid.T) {
		fired := rapid.SliceOfNDistinct(rapid.Custom(anyAlert), 1, 8, model.LabelSet.String).Draw(rt, "alerts")
		rules := rapid.SliceOfN(rapid.Custom(anyInhibition), 0, 3).Draw(rt, "inhibitions")
		text, routing := configOf(rt, anyRoute(rt, 0), rules, fired)
		same(rt, text, routing, fired)
	})
}

func anyRoute(rt *rapid.T, depth int) map[string]any {
	r := map[string]any{"group_wait": "10ms", "group_interval": "1h"}
	if depth == 0 || rapid.Bool().Draw(rt, "has a receiver") {
		r["receiver"] = fmt.Sprintf("r%d", rapid.IntRange(min(depth, 1), 2).Draw(rt, "receiver"))
	}
	if by := rapid.SampledFrom([][]string{nil, {}, {"alertname"}, {"node", "severity"}, {"..."}}).Draw(rt, "group by"); by != nil {
		r["group_by"] = by
	}
	if depth > 0 {
		r["matchers"] = rapid.SliceOfN(rapid.Custom(anyMatcher), 1, 2).Draw(rt, "matchers")
		r["continue"] = rapid.Bool().Draw(rt, "continue")
	}
	var below []any
	for range rapid.IntRange(0, 3-depth).Draw(rt, "routes below") {
		below = append(below, anyRoute(rt, depth+1))
	}
	r["routes"] = below
	return r
}

func anyMatcher(rt *rapid.T) string {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(labelValues))).Draw(rt, "label")
	value := rapid.SampledFrom(append([]string{"", "n.*", "A|C"}, labelValues[name]...)).Draw(rt, "value")
	return name + rapid.SampledFrom([]string{"=", "!=", "=~", "!~"}).Draw(rt, "operator") + fmt.Sprintf("%q", value)
}

func anyInhibition(rt *rapid.T) map[string]any {
	return map[string]any{
		"source_matchers": rapid.SliceOfN(rapid.Custom(anyMatcher), 1, 2).Draw(rt, "source"),
		"target_matchers": rapid.SliceOfN(rapid.Custom(anyMatcher), 1, 2).Draw(rt, "target"),
		"equal":           rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"node", "severity", "zone"}), 0, 2, rapid.ID).Draw(rt, "equal"),
	}
}

func anyAlert(rt *rapid.T) model.LabelSet {
	set := model.LabelSet{}
	for _, name := range slices.Sorted(maps.Keys(labelValues)) {
		if name == "alertname" || rapid.Bool().Draw(rt, "has "+name) {
			set[model.LabelName(name)] = model.LabelValue(rapid.SampledFrom(labelValues[name]).Draw(rt, name))
		}
	}
	maps.DeleteFunc(set, func(_ model.LabelName, v model.LabelValue) bool { return v == "" })
	return set
}

// configOf makes the configuration. No alert matches both sides of one of its rules: Alertmanager
// keeps one source for each set of equal labels since version 0.29, so what such an alert inhibits
// depends on the order of the alerts.
func configOf(rt *rapid.T, route map[string]any, rules []map[string]any, fired []model.LabelSet) ([]byte, *Routing) {
	read := func(rules []map[string]any) ([]byte, *Routing) {
		text, err := yaml.Marshal(map[string]any{
			"receivers": []any{map[string]any{"name": "r0"}, map[string]any{"name": "r1"}, map[string]any{"name": "r2"}},
			"route":     route, "inhibit_rules": rules,
		})
		require.NoError(rt, err)
		routing, err := ReadRouting(text)
		require.NoError(rt, err)
		return text, routing
	}
	_, all := read(rules)
	var kept []map[string]any
	for i, r := range all.Inhibit {
		if !slices.ContainsFunc(fired, func(set model.LabelSet) bool { return r.source.Matches(set) && r.target.Matches(set) }) {
			kept = append(kept, rules[i])
		}
	}
	return read(kept)
}

// saidByBacktest is a line for each group with its receiver and its alerts, and one for each alert
// that others inhibit.
func saidByBacktest(routing *Routing, fired []model.LabelSet) (out []string) {
	a := newAlertmanager(routing, &remediations.Config{}, nil, 0)
	for _, set := range fired {
		a.begin(&firing{fingerprint: set.Fingerprint().String(), set: set, startsAt: midnight}, midnight)
	}
	for key, g := range a.groups {
		out = append(out, groupLine(g.route.Receiver, key[strings.Index(key, "{"):], slices.Collect(maps.Keys(g.alerts))))
	}
	for _, f := range a.active {
		a.mute(f)
		out = append(out, inhibitedLine(f.fingerprint, f.inhibitedBy)...)
	}
	slices.Sort(out)
	return out
}

func groupLine(receiver, by string, alerts []string) string {
	slices.Sort(alerts)
	return fmt.Sprintf("receiver %s group %s alerts %s", receiver, by, strings.Join(alerts, " "))
}

// inhibitedLine does not name the inhibiting alerts: Alertmanager names one of each rule.
func inhibitedLine(alert string, by []string) []string {
	if len(by) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("alert %s is inhibited", alert)}
}

// realAlertmanager is one that is started again with each configuration: so no alert of the one
// before is left.
type realAlertmanager struct {
	t       testing.TB
	program string
	process *exec.Cmd
	url     string
}

func startAlertmanager(t testing.TB) *realAlertmanager {
	built, err := programs.Build(t.Context(), t.Output(), "alertmanager")
	require.NoError(t, err)
	s := &realAlertmanager{t: t, program: built["alertmanager"]}
	t.Cleanup(s.stop)
	return s
}

func (s *realAlertmanager) stop() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	}
}

func (s *realAlertmanager) restartWith(t require.TestingT, config []byte, fired []model.LabelSet) {
	s.stop()
	dir := s.t.TempDir()
	file := filepath.Join(dir, "alertmanager.yaml")
	require.NoError(t, os.WriteFile(file, config, 0o600))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	var log bytes.Buffer
	s.url = "http://" + address
	s.process = exec.CommandContext(s.t.Context(), s.program, "--config.file="+file, "--storage.path="+dir, "--web.listen-address="+address, "--cluster.listen-address=")
	s.process.Stderr = &log
	require.NoError(t, s.process.Start())
	require.Eventually(t, func() bool { _, err := s.get("/-/ready"); return err == nil }, 30*time.Second, 5*time.Millisecond)
	var posted models.PostableAlerts
	for _, set := range fired {
		one := models.LabelSet{}
		for name, value := range set {
			one[string(name)] = string(value)
		}
		posted = append(posted, &models.PostableAlert{Alert: models.Alert{Labels: one}})
	}
	body, err := json.Marshal(posted)
	require.NoError(t, err)
	answer, err := http.Post(s.url+"/api/v2/alerts", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

func (s *realAlertmanager) get(path string) ([]byte, error) {
	answer, err := http.Get(s.url + path)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// says is what saidByBacktest is of the backtest.
func (s *realAlertmanager) says() (out []string, err error) {
	var groups models.AlertGroups
	text, err := s.get("/api/v2/alerts/groups")
	if err == nil {
		err = json.Unmarshal(text, &groups)
	}
	seen := map[string]bool{}
	for _, g := range groups {
		by, alerts := model.LabelSet{}, []string(nil)
		for name, value := range g.Labels {
			by[model.LabelName(name)] = model.LabelValue(value)
		}
		for _, a := range g.Alerts {
			alerts = append(alerts, *a.Fingerprint)
			if !seen[*a.Fingerprint] {
				seen[*a.Fingerprint] = true
				out = append(out, inhibitedLine(*a.Fingerprint, a.Status.InhibitedBy)...)
			}
		}
		out = append(out, groupLine(*g.Receiver.Name, by.String(), alerts))
	}
	slices.Sort(out)
	return out, err
}
