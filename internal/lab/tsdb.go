package lab

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"drydock.dev/drydock/internal/lab/programs"
)

// ServeTSDB runs Prometheus on a TSDB folder until the test ends, and returns its address.
func ServeTSDB(t testing.TB, dir string) string {
	t.Helper()
	process, address, err := serveTSDB(t.Context(), t.Output(), dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	return address
}

// serveTSDB starts Prometheus on dir. Its configuration and its log are in own.
func serveTSDB(ctx context.Context, progress io.Writer, dir, own string) (*Process, string, error) {
	built, err := programs.Build(ctx, progress, "prometheus")
	if err != nil {
		return nil, "", err
	}
	port, err := FreePort()
	if err != nil {
		return nil, "", err
	}
	config := filepath.Join(own, "prometheus.yaml")
	if err := os.WriteFile(config, []byte("global: {}\n"), 0o600); err != nil {
		return nil, "", err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	process, err := StartProcess(ctx, Spec{
		Name: "prometheus", Path: built["prometheus"], Log: filepath.Join(own, "log"), ReadyURL: "http://" + address + "/-/ready",
		Args: []string{"--config.file=" + config, "--web.listen-address=" + address, "--storage.tsdb.path=" + dir, "--storage.tsdb.retention.time=100y"},
	})
	return process, "http://" + address, err
}
