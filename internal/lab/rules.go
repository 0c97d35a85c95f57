package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// watchdog is the alert that always fires, as kube-prometheus-stack ships it:
// its absence says that the way from Prometheus is broken.
const watchdog = `groups:
- name: lab
  rules:
  - alert: Watchdog
    expr: vector(1)
    labels: {severity: none}
`

// writeRules writes the lab's copies of the rule files and returns where.
func (l *Lab) writeRules() ([]string, error) {
	dir := filepath.Join(l.dir, "rules")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the rules' folder: %w", err)
	}
	own := filepath.Join(dir, "lab.yaml")
	if err := os.WriteFile(own, []byte(watchdog), 0o600); err != nil {
		return nil, fmt.Errorf("writing the Watchdog: %w", err)
	}
	paths := []string{own}
	for i, source := range l.options.RuleFiles {
		data, err := os.ReadFile(source)
		if err != nil {
			return nil, fmt.Errorf("reading rule file %s: %w", source, err)
		}
		if data, err = adaptRules(data, l.options.RuleFor); err != nil {
			return nil, fmt.Errorf("reading rule file %s: %w", source, err)
		}
		path := filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(source)))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return nil, fmt.Errorf("copying rule file %s: %w", source, err)
		}
		paths = append(paths, path)
	}
	return append(paths, filepath.Join(dir, laterRules("*"))), nil
}

// laterRules is the file of rules that a test loads later.
func laterRules(name string) string { return "later-" + name + ".yaml" }

// LoadRules makes Prometheus load these rules as well; under the name of earlier ones, in their place.
func (l *Lab) LoadRules(ctx context.Context, name string, rules []byte) error {
	if err := os.WriteFile(filepath.Join(l.dir, "rules", laterRules(name)), rules, 0o600); err != nil {
		return fmt.Errorf("writing the rules %s: %w", name, err)
	}
	if err := reload(ctx, l.prometheus); err != nil {
		return fmt.Errorf("loading the rules %s: %w", name, err)
	}
	return nil
}

// adaptRules takes the groups out of a PrometheusRule where it is one, and
// makes the rules as quick as the lab wants them.
func adaptRules(data []byte, quick *time.Duration) ([]byte, error) {
	var file struct {
		Groups []map[string]any `json:"groups"`
		Spec   struct {
			Groups []map[string]any `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	groups := append(file.Groups, file.Spec.Groups...)
	if len(groups) == 0 {
		return nil, fmt.Errorf("it has no groups")
	}
	for _, group := range groups {
		if quick == nil {
			break
		}
		delete(group, "interval")
		rules, _ := group["rules"].([]any)
		for _, rule := range rules {
			fields, ok := rule.(map[string]any)
			if !ok || fields["alert"] == nil {
				continue
			}
			for _, key := range []string{"for", "keep_firing_for"} {
				if _, ok := fields[key]; ok {
					fields[key] = prometheusDuration(*quick)
				}
			}
		}
	}
	return yaml.Marshal(map[string]any{"groups": groups})
}

// prometheusDuration writes a duration without the fractions that Prometheus
// cannot read.
func prometheusDuration(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
