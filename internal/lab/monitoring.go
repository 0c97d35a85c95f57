package lab

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

func (l *Lab) startMonitoring(ctx context.Context) error {
	var further []string
	var jobs []map[string]any
	if l.options.Sidecars {
		file, err := shipped("kube-state-metrics-sei.yaml")
		if err != nil {
			return err
		}
		further = []string{"--custom-resource-state-config-file=" + file}
		if jobs, err = l.startBlackbox(ctx); err != nil {
			return err
		}
	}
	_, ports, err := l.startOnPorts(ctx, 2, func(ports []int) Spec {
		return Spec{Name: "kube-state-metrics", Again: true, ReadyURL: "http://" + address(ports[0]) + "/healthz", Args: append([]string{
			"--kubeconfig=" + l.AdminKubeconfig(), "--resources=nodes,pods,leases",
			"--host=127.0.0.1", fmt.Sprintf("--port=%d", ports[0]),
			"--telemetry-host=127.0.0.1", fmt.Sprintf("--telemetry-port=%d", ports[1]),
		}, further...)}
	})
	if err != nil {
		return err
	}
	config, err := l.writePrometheusConfig(address(ports[0]), jobs)
	if err != nil {
		return err
	}
	_, ports, err = l.startOnPorts(ctx, 1, func(ports []int) Spec {
		return Spec{Name: "prometheus", ReadyURL: "http://" + address(ports[0]) + "/-/ready", Args: []string{
			"--config.file=" + config, "--web.listen-address=" + address(ports[0]), "--web.enable-lifecycle", "--web.enable-admin-api",
			"--storage.tsdb.path=" + filepath.Join(l.dataDir(), "prometheus"),
			// With a short delay, an Alertmanager that lost its memory receives the firing alerts
			// again within seconds. The default is a minute. An Alertmanager resolves an alert that
			// Prometheus has not sent for four times this delay.
			"--rules.alert.resend-delay=2s",
		}}
	})
	if err != nil {
		return err
	}
	l.prometheus = "http://" + address(ports[0])
	return nil
}

func (l *Lab) writePrometheusConfig(stateMetrics string, further []map[string]any) (string, error) {
	rules, err := l.writeRules()
	if err != nil {
		return "", err
	}
	job := func(name string, addresses ...string) map[string]any {
		return map[string]any{
			"job_name":     name,
			"honor_labels": true, // kube-state-metrics sets the labels node, namespace and pod itself
			"static_configs": []any{
				map[string]any{"targets": addresses},
			},
		}
	}
	jobs := append([]map[string]any{job("kube-state-metrics", stateMetrics)}, further...)
	for _, name := range slices.Sorted(maps.Keys(l.options.Scrape)) {
		jobs = append(jobs, job(name, l.options.Scrape[name]...))
	}
	jobs = append(jobs, l.options.ScrapeConfigs...)
	var alertmanagers []string
	for _, r := range l.alertmanagers {
		alertmanagers = append(alertmanagers, address(r.port))
	}
	interval := prometheusDuration(l.options.Interval)
	data, err := yaml.Marshal(map[string]any{
		"global": map[string]any{
			"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval,
			"external_labels": l.options.ExternalLabels,
		},
		"rule_files":     rules,
		"scrape_configs": jobs,
		"alerting": map[string]any{"alertmanagers": []any{
			map[string]any{"static_configs": []any{map[string]any{"targets": alertmanagers}}},
		}},
	})
	if err != nil {
		return "", fmt.Errorf("encoding the configuration of Prometheus: %w", err)
	}
	path := filepath.Join(l.dir, "prometheus.yaml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("writing the configuration of Prometheus: %w", err)
	}
	return path, nil
}
