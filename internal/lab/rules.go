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

// watchdog is the rule of an alert that always fires, as kube-prometheus-stack ships it. If the
// alert is missing, the path from Prometheus is broken.
const watchdog = `groups:
- name: lab
  rules:
  - alert: Watchdog
    expr: vector(1)
    labels: {severity: none}
`

// writeRules writes the lab's copies of the rule files and returns their paths.
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

// laterRules returns the name of the file with rules that a test loads after the lab's start.
func laterRules(name string) string { return "later-" + name + ".yaml" }

// LoadRules makes Prometheus load additional rules. Rules that were loaded under the same name are
// replaced.
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

// LoadRuleFile makes Prometheus load an additional rule file or PrometheusRule object, with other
// times. If the alert must not fire again at once, For must be longer than the policy's proofFor.
// If KeepFiring is zero, keep_firing_for of the rules is removed.
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

// shortLooks shortens the time ranges in the shipped rules to fit a lab's scrape interval. It also
// removes their minimum age of nodes, because a lab's nodes are all new.
var shortLooks = strings.NewReplacer("[3m]", "[4s]", "offset 3m", "offset 4s", "< 600", "< 0")

// ShortLooks returns a shipped rule's expression with time ranges that fit a lab.
func ShortLooks(expr string) string { return shortLooks.Replace(expr) }

// adaptRules reads the groups of a rule file or a PrometheusRule, and sets the times that the lab
// needs.
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

// prometheusDuration formats a duration in milliseconds, because Prometheus cannot read fractions.
func prometheusDuration(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
