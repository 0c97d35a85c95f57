package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab/programs"
)

type sidecarScrape struct {
	Jobs    []map[string]any `json:"scrape_configs"`
	Modules map[string]any   `json:"modules"`
}

func readSidecarScrape() (sidecarScrape, error) {
	var read sidecarScrape
	path, err := shipped("prometheus-sidecars.yaml")
	if err != nil {
		return read, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return read, fmt.Errorf("reading how sidecars are watched: %w", err)
	}
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for range 2 {
		if err := documents.Decode(&read); err != nil {
			return read, fmt.Errorf("reading how sidecars are watched: %s: %w", path, err)
		}
	}
	return read, nil
}

func shipped(name string) (string, error) {
	root, err := programs.ModuleRoot()
	if err != nil {
		return "", fmt.Errorf("finding deploy/%s: %w", name, err)
	}
	return filepath.Join(root, "deploy", name), nil
}

// It returns the scrape jobs that Prometheus uses for the exporter.
func (l *Lab) startBlackbox(ctx context.Context) ([]map[string]any, error) {
	read, err := readSidecarScrape()
	if err != nil {
		return nil, err
	}
	modules, err := yaml.Marshal(map[string]any{"modules": read.Modules})
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration of the blackbox exporter: %w", err)
	}
	config := filepath.Join(l.dir, "blackbox.yaml")
	if err := os.WriteFile(config, modules, 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration of the blackbox exporter: %w", err)
	}
	_, ports, err := l.startOnPorts(ctx, 1, func(ports []int) Spec {
		return Spec{Name: "blackbox_exporter", ReadyURL: "http://" + address(ports[0]) + "/-/healthy", Args: []string{
			"--config.file=" + config, "--web.listen-address=" + address(ports[0]),
			// A probe ends this much before the scrape timeout. The default is too long for the
			// lab's short scrapes.
			"--timeout-offset=0.2",
		}}
	})
	if err != nil {
		return nil, err
	}
	for _, job := range read.Jobs {
		l.adaptJob(job, address(ports[0]))
	}
	return read.Jobs, nil
}

// Only what differs from a real cluster is changed: how Prometheus reaches the API server, where
// the exporter listens, and all intervals.
func (l *Lab) adaptJob(job map[string]any, blackbox string) {
	delete(job, "scrape_interval")
	delete(job, "scrape_timeout")
	for _, discovery := range objects(job["kubernetes_sd_configs"]) {
		discovery["kubeconfig_file"] = l.AdminKubeconfig()
	}
	for _, rule := range objects(job["relabel_configs"]) {
		if rule["target_label"] == "__address__" {
			rule["replacement"] = blackbox
		}
	}
}

func objects(list any) []map[string]any {
	all, _ := list.([]any)
	var out []map[string]any
	for _, one := range all {
		if object, ok := one.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}
