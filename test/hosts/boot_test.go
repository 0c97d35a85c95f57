package hosts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/hosts"
	"drydock.dev/drydock/internal/lab/programs"
)

// shared is what all tests of the package use together.
var shared struct {
	hosts *hosts.Hosts
	lab   *lab.Lab
	token string
	err   error // why it could not be started
}

func TestMain(m *testing.M) {
	m.Run() // TestMain passes the result on itself
	leaked := false
	if shared.lab != nil {
		leaks, err := shared.lab.Leaks(context.Background())
		if leaked = err != nil || len(leaks) > 0; leaked {
			fmt.Fprintln(os.Stderr, "the lab's secrets:", strings.Join(leaks, "; "), err)
			shared.lab.Keep()
		}
		shared.lab.Stop()
	}
	if shared.hosts != nil {
		shared.hosts.Close()
	}
	if leaked {
		os.Exit(1)
	}
}

// boot starts the hosts and the lab at its first call.
func boot(t *testing.T) {
	t.Helper()
	hosts.Need(t)
	if shared.lab == nil && shared.err == nil {
		// They must not end with the first test.
		shared.err = bootAll(context.WithoutCancel(t.Context()))
	}
	require.NoError(t, shared.err)
	t.Cleanup(func() {
		if t.Failed() {
			shared.hosts.Keep()
			shared.lab.Keep()
			t.Logf("logs: %s, %s", shared.hosts.LogDir(), shared.lab.LogDir())
		}
	})
}

func bootAll(ctx context.Context) (err error) {
	if shared.hosts, err = hosts.New(ctx, hosts.Options{LeaseSeconds: int(grace.Seconds() * 2 / 3)}); err != nil {
		return err
	}
	job, err := startBlackbox(ctx, shared.hosts)
	if err != nil {
		return err
	}
	ruleFor := time.Second
	shared.lab, err = lab.Start(ctx, lab.Options{
		APIServers: shared.hosts.StartCluster, NodeGrace: grace, RuleFor: &ruleFor,
		RuleFiles:     []string{"../../rules/NodeNotReady.yaml", "../../rules/APIServerDown.yaml"},
		ScrapeConfigs: []map[string]any{job},
	})
	return err
}

// startBlackbox starts the exporter that probes the API servers from outside, and returns the job
// of Prometheus for it. It ends with this process.
func startBlackbox(ctx context.Context, h *hosts.Hosts) (map[string]any, error) {
	paths, err := programs.Build(ctx, os.Stderr, "blackbox_exporter")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(h.Dir(), "blackbox.yaml")
	// The probe does not check the certificate, because the authority does not exist yet.
	text := `{modules: {readyz: {prober: http, timeout: 800ms, http: {valid_status_codes: [200], tls_config: {insecure_skip_verify: true}}}}}`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration of the blackbox exporter: %w", err)
	}
	port, err := lab.FreePort()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	_, err = lab.StartProcess(ctx, lab.Spec{
		Name: "blackbox_exporter", Path: paths["blackbox_exporter"], Log: filepath.Join(h.LogDir(), "blackbox.log"),
		Args:     []string{"--config.file=" + config, "--web.listen-address=" + address, "--timeout-offset=0.1"},
		ReadyURL: "http://" + address + "/-/healthy",
	})
	if err != nil {
		return nil, err
	}
	var targets []any
	for _, host := range h.All() {
		if host.ControlPlane {
			targets = append(targets, map[string]any{"targets": []string{host.APIServer() + "/readyz"}, "labels": map[string]string{"node": host.Name}})
		}
	}
	return map[string]any{
		"job_name": "apiserver", "metrics_path": "/probe", "params": map[string]any{"module": []string{"readyz"}},
		"static_configs": targets,
		"relabel_configs": []any{
			map[string]any{"source_labels": []string{"__address__"}, "target_label": "__param_target"},
			map[string]any{"source_labels": []string{"__param_target"}, "target_label": "instance"},
			map[string]any{"target_label": "__address__", "replacement": address},
		},
	}, nil
}
