package lab

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab/programs"
)

// ServeTSDB runs Prometheus on a folder with a TSDB until the test ends, and returns its address.
// It scrapes nothing, and evaluates the rules in these files.
func ServeTSDB(t testing.TB, dir string, rules ...string) string {
	t.Helper()
	_, address := StartTSDB(t, dir, rules...)
	return address
}

// StartTSDB is ServeTSDB, but also returns the process.
func StartTSDB(t testing.TB, dir string, rules ...string) (*Process, string) {
	t.Helper()
	process, address, err := serveTSDB(t.Context(), t.Output(), dir, t.TempDir(), rules...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	return process, address
}

// WriteTSDB makes a folder with a TSDB from samples in the OpenMetrics format. It uses promtool.
func WriteTSDB(t testing.TB, openMetrics string) string {
	t.Helper()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "samples")
	built, err := programs.Build(t.Context(), t.Output(), "promtool")
	if err == nil {
		err = os.WriteFile(file, []byte(openMetrics), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), built["promtool"], "tsdb", "create-blocks-from", "openmetrics", file, dir).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v: %s", err, out)
	}
	return dir
}

// ServeVictoriaMetrics runs VictoriaMetrics with samples in the OpenMetrics format until the test
// ends, and returns its address. Its lookback is that of Prometheus: without staleness markers,
// VictoriaMetrics would guess it.
func ServeVictoriaMetrics(t testing.TB, openMetrics string) string {
	t.Helper()
	built, err := programs.Build(t.Context(), t.Output(), "victoria-metrics")
	if err != nil {
		t.Fatal(err)
	}
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	process, err := StartProcess(t.Context(), Spec{
		Name: "victoria-metrics", Path: built["victoria-metrics"], Log: filepath.Join(t.TempDir(), "log"), ReadyURL: "http://" + address + "/health",
		Args: []string{"-storageDataPath=" + t.TempDir(), "-httpListenAddr=" + address, "-retentionPeriod=100y", "-search.minStalenessInterval=5m"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	for _, send := range []struct{ path, body string }{{"/api/v1/import/prometheus", openMetrics}, {"/internal/force_flush", ""}} {
		answer, err := http.Post("http://"+address+send.path, "text/plain", strings.NewReader(send.body)) //nolint:noctx // ends with the process
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode/100 != 2 {
			t.Fatalf("victoria-metrics: %s: %s", send.path, answer.Status)
		}
	}
	return "http://" + address
}

func serveTSDB(ctx context.Context, progress io.Writer, dir, own string, rules ...string) (*Process, string, error) {
	built, err := programs.Build(ctx, progress, "prometheus")
	if err != nil {
		return nil, "", err
	}
	port, err := FreePort()
	if err != nil {
		return nil, "", err
	}
	config := filepath.Join(own, "prometheus.yaml")
	text, err := yaml.Marshal(map[string]any{"rule_files": rules})
	if err != nil {
		return nil, "", err
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return nil, "", err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	process, err := StartProcess(ctx, Spec{
		Name: "prometheus", Path: built["prometheus"], Log: filepath.Join(own, "log"), ReadyURL: "http://" + address + "/-/ready",
		Args: []string{"--config.file=" + config, "--web.listen-address=" + address, "--storage.tsdb.path=" + dir, "--storage.tsdb.retention.time=100y"},
	})
	return process, "http://" + address, err
}
