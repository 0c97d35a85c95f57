// Command render writes the files that are generated from the chart: its copy of the rules (Helm
// reads only files inside the chart), the manifests in deploy, and the page about the chart's
// values.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := render(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func render(ctx context.Context) error {
	root, err := programs.ModuleRoot()
	if err != nil {
		return err
	}
	if err := copyRules(filepath.Join(root, "rules"), filepath.Join(root, "charts", "drydock", "rules")); err != nil {
		return err
	}
	for file, values := range deployments() {
		if err := writeManifests(filepath.Join(root, "deploy", file), values); err != nil {
			return fmt.Errorf("rendering deploy/%s: %w", file, err)
		}
	}
	return writeValuesPage(ctx, filepath.Join(root, "charts", "drydock"))
}

func deployments() map[string]map[string]any {
	return map[string]map[string]any{
		"drydock.yaml": {},
		"kube-prometheus-stack.yaml": {
			"monitoring": map[string]any{"operator": true, "labels": map[string]any{"release": "kube-prometheus-stack"}},
		},
	}
}

func writeManifests(file string, values map[string]any) error {
	manifests, err := lab.RenderChart("drydock", "drydock", values)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("# Rendered from charts/drydock by `make generate`; change the chart, not this file.\n")
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		fmt.Fprintf(&b, "---\n# %s\n%s\n", name, strings.Trim(manifests[name], "\n-"))
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

func copyRules(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("emptying the chart's rules: %w", err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("making the chart's rules: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil {
		return fmt.Errorf("looking for rules: %w", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("copying a rule: %w", err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), text, 0o644); err != nil {
			return fmt.Errorf("copying a rule: %w", err)
		}
	}
	return nil
}

func writeValuesPage(ctx context.Context, chart string) error {
	paths, err := programs.Build(ctx, os.Stderr, "helm-docs")
	if err != nil {
		return err
	}
	page := exec.CommandContext(ctx, paths["helm-docs"], "--chart-search-root="+chart, "--sort-values-order=file", "--log-level=warning")
	page.Stdout, page.Stderr = os.Stderr, os.Stderr
	if err := page.Run(); err != nil {
		return fmt.Errorf("writing the page of the chart's values: %w", err)
	}
	return nil
}
