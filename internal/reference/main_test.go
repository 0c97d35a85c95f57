package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePageIsWhatTheCodeMakes: `go run ./internal/reference` writes it again.
func TestThePageIsWhatTheCodeMakes(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	want, err := page(root)
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(root, pageFile))
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run: go run ./internal/reference")
}

// TestEveryMetricThatIsReadIsOnThePage: what the shipped alerts and the dashboard read is there, so
// the code was read whole.
func TestEveryMetricThatIsReadIsOnThePage(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	text, err := page(root)
	require.NoError(t, err)
	for _, name := range []string{
		"drydock_repairs_in_progress", "drydock_repairs_total", "drydock_holds", "drydock_blind", "drydock_breaker_state", "drydock_leader",
		"drydock_selftest_state", "drydock_webhook_certificate_expiry_timestamp_seconds", "drydock_mesh_probe_success",
		"drydock_mesh_questions_total", "drydock_node_expected_gpus", "drydock_alerts_received_total", "drydock_build_info",
	} {
		require.Contains(t, text, "| `"+name+"` |")
	}
	var files []string
	for _, pattern := range []string{"rules/*.yaml", "charts/drydock/dashboards/*.json"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		files = append(files, found...)
	}
	parts := strings.NewReplacer("_bucket", "", "_sum", "", "_count", "") // of a histogram
	for _, file := range files {
		reads, err := os.ReadFile(file)
		require.NoError(t, err)
		for word := range strings.FieldsFuncSeq(string(reads), func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
			if strings.HasPrefix(word, "drydock_") {
				require.Contains(t, text, "| `"+parts.Replace(word)+"` |", file)
			}
		}
	}
}

// TestWhatCannotBeReadIsAnError, and no missing row.
func TestWhatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		`prometheus.NewGauge(prometheus.GaugeOpts{Name: name(), Help: "a"})`:                        "write the names and help texts of metrics as literals",
		`prometheus.NewGauge(prometheus.GaugeOpts{Name: "a"})`:                                      "a metric without Help",
		`prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "a", Help: "a"}, labels)`:                "the labels labels are not a package-level list of literals",
		`prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "a", Help: "a"}, []string{one()})`:       "write the labels of metrics as literals",
		`prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "a", Help: "a" + "b"}, []string{"one"})`: "write the names and help texts of metrics as literals",
	} {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "a.go"), []byte("package a\nvar x = "+code+"\n"), 0o600))
		_, err := metricsOf(folder)
		require.ErrorContains(t, err, want, code)
	}
}
