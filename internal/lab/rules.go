package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// An alert that always fires, as kube-prometheus-stack ships it. If it is missing, the path from
// Prometheus is broken.
const watchdog = `groups:
- name: lab
  rules:
  - alert: Watchdog
    expr: vector(1)
    labels: {severity: none}
`

func (l *Lab) writeRules() ([]string, error) {
	dir := filepath.Join(l.dir, "rules")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the rules' folder: %w", err)
	}
	own := filepath.Join(dir, "lab.yaml")
	if err := os.WriteFile(own, []byte(watchdog), 0o600); err != nil {
		return nil, fmt.Errorf("writing the Watchdog: %w", err)
	}
	var quick *RuleTimes
	if all := l.options.RuleFor; all != nil {
		quick = &RuleTimes{For: *all, KeepFiring: *all}
	}
	paths := []string{own}
	for i, source := range l.options.RuleFiles {
		data, err := os.ReadFile(source)
		if err != nil {
			return nil, fmt.Errorf("reading rule file %s: %w", source, err)
		}
		if data, err = adaptRules(data, quick); err != nil {
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

func laterRules(name string) string { return "later-" + name + ".yaml" }

// LoadRules makes Prometheus load additional rules, and replaces those of the same name.
func (l *Lab) LoadRules(ctx context.Context, name string, rules []byte) error {
	if err := os.WriteFile(filepath.Join(l.dir, "rules", laterRules(name)), rules, 0o600); err != nil {
		return fmt.Errorf("writing the rules %s: %w", name, err)
	}
	if err := reload(ctx, l.prometheus); err != nil {
		return fmt.Errorf("loading the rules %s: %w", name, err)
	}
	return nil
}

// RuleTimes replace the times of rules. A rule without keep_firing_for stays without one.
type RuleTimes struct{ For, KeepFiring time.Duration }

// LoadRuleFile makes Prometheus load a rule file or PrometheusRule object with other times. If the
// alert must not fire again at once, For must be longer than the policy's proofFor. A KeepFiring of
// 0 removes keep_firing_for.
func (l *Lab) LoadRuleFile(ctx context.Context, file string, times RuleTimes) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading rule file %s: %w", file, err)
	}
	if data, err = adaptRules(data, &times); err != nil {
		return fmt.Errorf("reading rule file %s: %w", file, err)
	}
	return l.LoadRules(ctx, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), data)
}

// Shorter time ranges fit a lab's scrape interval. A minimum age of nodes would exclude all nodes
// of a lab, which are new.
var shortLooks = strings.NewReplacer("[3m]", "[4s]", "offset 3m", "offset 4s", "< 600", "< 0")

// ShortLooks returns a shipped rule's expression with time ranges that fit a lab.
func ShortLooks(expr string) string { return shortLooks.Replace(expr) }

func adaptRules(data []byte, quick *RuleTimes) ([]byte, error) {
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
			for key, to := range map[string]time.Duration{"for": quick.For, "keep_firing_for": quick.KeepFiring} {
				if _, ok := fields[key]; ok {
					fields[key] = prometheusDuration(to)
				}
			}
			if expr, ok := fields["expr"].(string); ok {
				fields["expr"] = ShortLooks(expr)
			}
		}
	}
	return yaml.Marshal(map[string]any{"groups": groups})
}

// The unit is milliseconds, because Prometheus cannot read fractions.
func prometheusDuration(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
