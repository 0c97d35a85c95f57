package rules_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
)

// anyJob are the metrics that rules accept from any job, because a forged one can do no more than
// the rule's comment says.
var anyJob = map[string]bool{
	"sei_controller_seinode_sidecar_ready":        true,
	"apiserver_admission_webhook_fail_open_count": true,
}

// TestEveryRuleBelievesOnlyTheJobThatMaySpeak: some job scrapes the metrics of any pod, and those
// must not cause an alert.
func TestEveryRuleBelievesOnlyTheJobThatMaySpeak(t *testing.T) {
	const (
		stateMetrics = `job=~"kube-state-metrics|.+[-/]kube-state-metrics"`
		drydock      = `job=~"drydock|.+[-/]drydock"`
		agents       = `job=~"drydock-agent|.+[-/]drydock-agent"`
		apiServers   = `job=~"apiserver|kube-apiserver|kubernetes-apiservers"`
	)
	selector := regexp.MustCompile(`\b(kube_[a-z_]+|drydock_[a-z_]+|sei_[a-z_]+|probe_[a-z_]+|apiserver_[a-z_]+|up|ALERTS)\b(\{[^}]*\})?`)
	words := regexp.MustCompile(`"[^"]*"`)
	seen := 0
	for name, r := range shipped(t) {
		// A metric's name in quotes is the value of a label, and does not count.
		bare := words.ReplaceAllStringFunc(r.Expr, func(s string) string { return strings.ReplaceAll(s, "_", "\x00") })
		for _, m := range selector.FindAllStringSubmatch(bare, -1) {
			metric, labels := m[1], strings.ReplaceAll(m[2], "\x00", "_")
			seen++
			switch {
			case anyJob[metric], metric == "up" && name == "DrydockWebhookFailing":
			case metric == "ALERTS":
				require.Contains(t, labels, `{job="",`, "%s: a scraped series has a job, Prometheus' own has none", name)
			case metric == "probe_http_status_code":
				require.Contains(t, labels, `job="sidecar-healthz"`, name)
			case strings.HasPrefix(metric, "kube_seinode"):
				require.Contains(t, labels, `job=~".*kube-state-metrics.*"`, name)
			case strings.HasPrefix(metric, "drydock_mesh_probe"):
				require.True(t, strings.Contains(labels, agents) && strings.Contains(labels, `node!=""`) || name == "DrydockSourceIncomplete", "%s: %s", name, labels)
			case strings.HasPrefix(metric, "drydock_mesh"):
				require.Contains(t, labels, agents, name)
			case strings.HasPrefix(metric, "drydock"):
				require.Contains(t, labels, drydock, name)
			default:
				require.True(t, strings.Contains(labels, stateMetrics) || strings.Contains(labels, apiServers), "%s: %s%s", name, metric, labels)
			}
		}
		require.NotContains(t, r.Expr, "src_node", "%s: what an agent says of itself is the scraped target's label node", name)
	}
	require.Greater(t, seen, 100)
}

// restored is the shortest `for` whose state Prometheus restores after its restart. kept is how
// long Alertmanager keeps an alert that Prometheus does not send again.
const restored, kept = 10 * time.Minute, 4 * time.Minute

// TestAnAlertThatRepairsNeitherLapsesNorLingers: the alert outlives a short gap of its source and a
// restart of Prometheus. It ends long before the shortest wait of any policy that matches it,
// because a repair has recovered its node only when the alert has ended.
func TestAnAlertThatRepairsNeitherLapsesNorLingers(t *testing.T) {
	for name, r := range shipped(t) {
		if rem := r.Labels["remediation"]; rem == peopleOnly || rem == selfTest {
			continue
		}
		require.NotEmpty(t, r.Keep, "%s repairs and has no keep_firing_for", name)
		keep, err := model.ParseDuration(r.Keep)
		require.NoError(t, err, name)
		require.Positive(t, keep, name)
		wait, err := model.ParseDuration(r.For)
		require.NoError(t, err, name)
		require.True(t, time.Duration(wait) >= restored || time.Duration(wait)+time.Minute <= kept,
			"%s: with `for: %s` it lapses when Prometheus restarts", name, r.For)

		set := model.LabelSet{"alertname": model.LabelValue(r.Alert)}
		for k, v := range r.Labels {
			set[model.LabelName(k)] = model.LabelValue(v)
		}
		for _, p := range config.Shipped().Policies {
			if !p.Match.Matches(set) || p.Kind == remediations.KindSidecar || r.Alert == "APIServerDown" {
				continue // the API servers' own answers are the proof
			}
			for _, step := range p.Plan {
				if !remediations.Shipped()[step.Name].Once {
					continue
				}
				require.LessOrEqual(t, time.Duration(keep)+p.ProofFor+time.Minute, step.Wait,
					"%s: a repair by %s that cured has no time to see the alert end in its step %s", name, p.Name, step.Name)
			}
		}
	}
}
