package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
)

// pages are the alerts which report that Drydock has given up or cannot work.
var pages = []model.LabelValue{"DrydockRepairExhausted", "DrydockRepairHeldTooLong", "DrydockPolicyStopped", "DrydockDown", "DrydockNotConnected"}

// handled are the labels of the route for handled alerts in deploy/.
var handled = []model.LabelValue{"node-not-ready", "node-heartbeat-lost"}

// commented matches the lines of the route for handled alerts.
var commented = regexp.MustCompile(`(?m)^( +)# (- receiver: repairs-chat|  matchers: .*|  group_by: .*)$`)

// wakes returns which of the receivers for people must get the alert.
func wakes(set model.LabelSet) (pager, chat bool) {
	name := set["alertname"]
	switch {
	case set["remediation"] == "drydock-self-test":
	case slices.Contains(handled, set["remediation"]), name == "DrydockRepairInProgress", name == "DrydockRepairRelapsed":
		return false, true
	default:
		pager = true
	}
	return pager, name == "DrydockRepairExhausted" || name == "DrydockRepairHeldTooLong"
}

// TestAHandledAlertDoesNotPage: amtool reads the configuration with the commented lines switched
// on. Each alert which reports that Drydock has given up pages, and so does each alert that no
// policy handles. Without these lines a handled alert pages: that is the control.
func TestAHandledAlertDoesNotPage(t *testing.T) {
	built, err := programs.Build(t.Context(), t.Output(), "amtool")
	require.NoError(t, err)
	dir := t.TempDir()
	for _, e := range examples(t) {
		if e.add != nil { // these have the base of another example
			continue
		}
		before, after := filepath.Join(dir, "before.yaml"), filepath.Join(dir, "after.yaml")
		require.NoError(t, os.WriteFile(before, []byte(e.text), 0o600))
		require.NoError(t, os.WriteFile(after, []byte(e.handled), 0o600))
		seen := map[model.LabelValue]bool{}
		for _, set := range shipped(t) {
			routed := func(file string) []string {
				args := []string{"config", "routes", "test", "--config.file=" + file}
				for k, v := range set {
					args = append(args, string(k)+"="+string(v))
				}
				out, err := exec.CommandContext(t.Context(), built["amtool"], args...).Output()
				require.NoError(t, err, "%s", out)
				lines := strings.Split(strings.TrimSpace(string(out)), "\n") // the parser may print a warning before the last line
				return strings.Split(strings.TrimSpace(lines[len(lines)-1]), ",")
			}
			pager, chat := wakes(set)
			to := routed(after)
			require.Equal(t, pager, slices.Contains(to, "pager"), "%s: %v goes to %v", e.name, set, to)
			require.Equal(t, chat, slices.Contains(to, "repairs-chat"), "%s: %v goes to %v", e.name, set, to)
			if slices.Contains(handled, set["remediation"]) {
				require.Contains(t, to, e.drydock, "%s: Drydock must hear of %v", e.name, set)
				require.Contains(t, routed(before), "pager", "%s: the control", e.name)
			}
			seen[set["alertname"]] = true
		}
		for _, name := range pages {
			require.True(t, seen[name], "%s: %s was not tried", e.name, name)
		}
	}
}

// TestTheChartsRoutesForPeopleDoNotPageForAHandledAlert: the AlertmanagerConfig that the chart
// makes of alertmanagerConfig.people, in a real Alertmanager whose own configuration notifies no
// person.
func TestTheChartsRoutesForPeopleDoNotPageForAHandledAlert(t *testing.T) {
	webhook := []any{map[string]any{"url": "http://example.com"}}
	manifests, err := lab.RenderChart("drydock", "drydock", map[string]any{
		"monitoring": map[string]any{"operator": true},
		"config":     map[string]any{"mode": "enforce"},
		"alertmanagerConfig": map[string]any{"people": map[string]any{
			"handled": []any{string(handled[0]), string(handled[1])},
			"chat":    map[string]any{"webhookConfigs": webhook}, "pager": map[string]any{"webhookConfigs": webhook},
		}},
	})
	require.NoError(t, err)
	file := "drydock/templates/alertmanagerconfig.yaml"
	own, people, found := strings.Cut(manifests[file], "\n---\n")
	require.True(t, found)
	silent := map[string]any{"route": map[string]any{"receiver": "null"}, "receivers": []any{map[string]any{"name": "null"}}}
	drydock, forPeople := decodeAlertmanagerConfig(t, file, []byte(own)), decodeAlertmanagerConfig(t, file, []byte(people))
	require.Equal(t, "drydock-people", forPeople.Metadata.Name)
	for _, r := range forPeople.Spec.Receivers {
		require.Equal(t, []map[string]any{{"url": "http://example.com"}}, r.WebhookConfigs, r.Name)
	}
	text, err := yaml.Marshal(forPeople.merged(drydock.merged(silent, false), false))
	require.NoError(t, err)
	all := shipped(t)
	a := start(t, string(text))
	a.post(t, all)
	for _, s := range a.all(t, len(all)) {
		pager, chat := wakes(s.Labels)
		if pager {
			chat = false // the chart's pager is the only one that receives what Drydock gave up
		}
		to := s.receivers()
		require.Equal(t, pager, slices.Contains(to, "drydock/drydock-people/pager"), "%v goes to %v", s.Labels, to)
		require.Equal(t, chat, slices.Contains(to, "drydock/drydock-people/chat"), "%v goes to %v", s.Labels, to)
		ours := s.Labels["remediation"] != "none"
		require.Equal(t, ours, slices.Contains(to, "drydock/drydock/drydock"), "%v goes to %v", s.Labels, to)
	}
}

// TestTheReceiversForEndsOfRepairsAreAccepted by amtool, and the alert reaches them.
func TestTheReceiversForEndsOfRepairsAreAccepted(t *testing.T) {
	built, err := programs.Build(t.Context(), t.Output(), "amtool")
	require.NoError(t, err)
	amtool := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), built["amtool"], args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	const file = "alertmanager-receivers.yaml"
	require.Contains(t, amtool("check-config", file), "SUCCESS")
	for outcome, want := range map[string]string{"Recovered": "slack,teams", "Exhausted": "pagerduty"} {
		require.Equal(t, want, amtool("config", "routes", "test", "--config.file="+file, "alertname=DrydockRepairEnded", "remediation=none", "outcome="+outcome))
	}
	require.Equal(t, "null", amtool("config", "routes", "test", "--config.file="+file, "alertname=NodeNotReady"), "the control")
}
