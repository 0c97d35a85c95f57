package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab/programs"
)

type replica struct {
	process *Process
	port    int
}

// The replicas start one after the other, because each needs the gossip address of the first one.
func (l *Lab) startAlertmanagers(ctx context.Context) error {
	if err := l.writeAlertmanagerConfig(); err != nil {
		return err
	}
	var peer string
	for i := range l.options.Alertmanagers {
		name := alertmanagerName(i)
		process, ports, err := l.startOnPorts(ctx, 2, func(ports []int) Spec {
			spec := Spec{Name: name, Path: l.programs["alertmanager"], ReadyURL: "http://" + address(ports[0]) + "/-/ready", Args: []string{
				"--config.file=" + l.alertmanagerConfig(),
				"--storage.path=" + filepath.Join(l.dataDir(), name),
				"--web.listen-address=" + address(ports[0]),
			}}
			switch {
			case !l.options.AlertmanagerCluster:
				spec.Args = append(spec.Args, "--cluster.listen-address=")
			default:
				spec.Args = append(spec.Args,
					"--cluster.listen-address="+address(ports[1]), "--cluster.advertise-address="+address(ports[1]),
					"--cluster.settle-timeout=2s", "--cluster.gossip-interval=100ms")
				if peer != "" {
					spec.Args = append(spec.Args, "--cluster.peer="+peer)
				}
			}
			return spec
		})
		if err != nil {
			return err
		}
		if peer == "" {
			peer = address(ports[1])
		}
		l.alertmanagers = append(l.alertmanagers, &replica{process: process, port: ports[0]})
	}
	return nil
}

// AlertmanagerURLs returns the URLs of all replicas, also of stopped ones.
func (l *Lab) AlertmanagerURLs() []string {
	var urls []string
	for _, r := range l.alertmanagers {
		urls = append(urls, "http://"+address(r.port))
	}
	return urls
}

// StopAlertmanager kills a replica.
func (l *Lab) StopAlertmanager(i int) { l.alertmanagers[i].process.Kill() }

// StartAlertmanager starts a stopped replica on the same port. It keeps its silences, but has no
// alerts until Prometheus sends them again, within 3 s.
func (l *Lab) StartAlertmanager(ctx context.Context, i int) error {
	return l.alertmanagers[i].process.Start(ctx)
}

// SetWebhook changes where the alerts are sent. It works only with the lab's own configuration of
// Alertmanager.
func (l *Lab) SetWebhook(ctx context.Context, target WebhookTarget) error {
	if l.options.AlertmanagerConfig != "" {
		return errors.New("setting the webhook: the lab was given a whole Alertmanager configuration; change that")
	}
	l.mu.Lock()
	l.webhook = target
	l.mu.Unlock()
	if err := l.writeAlertmanagerConfig(); err != nil {
		return err
	}
	for i, r := range l.alertmanagers {
		if closed(r.process.Done()) {
			continue // a stopped replica reads the configuration when it is started again
		}
		if err := reload(ctx, "http://"+address(r.port)); err != nil {
			return fmt.Errorf("reloading %s: %w; %s", alertmanagerName(i), err, r.process.LogEnd())
		}
	}
	return nil
}

// AlertmanagerAlone starts a real Alertmanager without a lab or a cluster. It ends with the test.
// file is the path of its configuration.
func AlertmanagerAlone(t testing.TB, config string) (url, file string) {
	t.Helper()
	built, err := programs.Build(t.Context(), t.Output(), "alertmanager")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file = filepath.Join(dir, "alertmanager.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p, ports, err := onFreePorts(1, func(ports []int) (*Process, string, error) {
		at, log := address(ports[0]), filepath.Join(dir, "log")
		p, err := StartProcess(t.Context(), Spec{
			Name: "alertmanager", Path: built["alertmanager"], Log: log, ReadyURL: "http://" + at + "/-/ready",
			Args: []string{"--config.file=" + file, "--storage.path=" + dir, "--web.listen-address=" + at, "--cluster.listen-address="},
		})
		return p, log, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return "http://" + address(ports[0]), file
}

func reload(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/-/reload", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, 4096)) // only for the error message
		return fmt.Errorf("it answers %s: %s", res.Status, body)
	}
	return nil
}

func alertmanagerName(i int) string { return fmt.Sprintf("alertmanager-%d", i) }

func (l *Lab) alertmanagerConfig() string { return filepath.Join(l.dir, "alertmanager.yaml") }

func (l *Lab) writeAlertmanagerConfig() error {
	data := []byte(l.options.AlertmanagerConfig)
	if len(data) == 0 {
		var err error
		if data, err = yaml.Marshal(l.ownAlertmanagerConfig()); err != nil {
			return fmt.Errorf("encoding the configuration of Alertmanager: %w", err)
		}
	}
	if err := os.WriteFile(l.alertmanagerConfig(), data, 0o600); err != nil {
		return fmt.Errorf("writing the configuration of Alertmanager: %w", err)
	}
	return nil
}

// Grouped by node, as Drydock's documentation requires.
func (l *Lab) ownAlertmanagerConfig() map[string]any {
	l.mu.Lock()
	target := l.webhook
	l.mu.Unlock()
	drydock := map[string]any{"name": "drydock"}
	if target.URL != "" {
		client := map[string]any{}
		if target.TokenFile != "" {
			client["authorization"] = map[string]any{"type": "Bearer", "credentials_file": target.TokenFile}
		}
		if target.CAFile != "" {
			client["tls_config"] = map[string]any{"ca_file": target.CAFile}
		}
		drydock["webhook_configs"] = []any{map[string]any{"url": target.URL, "send_resolved": true, "http_config": client}}
	}
	return overlay(map[string]any{
		"route": map[string]any{
			"receiver":        "drydock",
			"group_by":        []string{"alertname", "node"},
			"group_wait":      prometheusDuration(l.options.GroupWait),
			"group_interval":  prometheusDuration(l.options.GroupInterval),
			"repeat_interval": prometheusDuration(l.options.RepeatInterval),
			"routes":          []any{map[string]any{"matchers": []string{`alertname="Watchdog"`}, "receiver": "nobody"}},
		},
		"receivers": []any{drydock, map[string]any{"name": "nobody"}},
	}, target.Config)
}
