package cluster

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/rules"
)

// Faster divides the times of the shipped rules and policies.
const Faster = 12

// A step may take this much less time. A host reboots as fast as it can.
const waitsFaster = 3

// Replaces the shipped relapseWindow and cooldown: a test may cause the fault of the test before it
// on the same node, and that is not a relapse.
const window = "10s"

// lookback matches a range, the step of a subquery, or an offset in a rule. age matches the age in
// seconds that a node must have.
var (
	lookback = regexp.MustCompile(`(\[|:|offset )([0-9]+[smh])\b`)
	age      = regexp.MustCompile(`< 600\b`)
)

func shorter(duration string, by time.Duration) (string, error) {
	d, err := time.ParseDuration(duration)
	if err != nil {
		return "", err
	}
	return strconv.FormatInt((d/by).Milliseconds(), 10) + "ms", nil
}

func shorterExpr(expr string) string {
	expr = lookback.ReplaceAllStringFunc(expr, func(match string) string {
		parts := lookback.FindStringSubmatch(match)
		d, _ := shorter(parts[2], Faster) // the pattern takes durations alone
		return parts[1] + d
	})
	return age.ReplaceAllString(expr, fmt.Sprintf("< %d", 600/Faster))
}

type policy struct {
	Name          string           `json:"name"`
	Target        map[string]any   `json:"target,omitempty"`
	NodeSelector  map[string]any   `json:"nodeSelector,omitempty"`
	Match         []string         `json:"match,omitempty"`
	For           string           `json:"for"`
	Plan          []map[string]any `json:"plan"`
	ProofFor      string           `json:"proofFor"`
	RelapseWindow string           `json:"relapseWindow"`
	Cooldown      string           `json:"cooldown"`
}

// The nodes of the cluster have no GPU and no mesh. Each policy takes the alerts with its own name
// as the label remediation.
func shippedPolicies() ([]policy, error) {
	text, err := config.Shipped().PoliciesYAML()
	if err != nil {
		return nil, err
	}
	var shipped struct {
		Policies []policy `json:"policies"`
	}
	if err := yaml.Unmarshal(text, &shipped); err != nil {
		return nil, fmt.Errorf("reading the shipped policies: %w", err)
	}
	return slices.DeleteFunc(shipped.Policies, func(p policy) bool {
		return p.Target["node"] == nil || !slices.Equal(p.Match, []string{fmt.Sprintf("remediation=%q", p.Name)}) ||
			p.Name == "node-gpu-count" || p.Name == "node-gpu-fault" || p.Name == "mesh-forwarding-fault"
	}), nil
}

// No provider of the cluster replaces a machine: a reboot cures what a replacement would (see
// TemporaryDir).
func policies() ([]policy, error) {
	all, err := shippedPolicies()
	if err != nil {
		return nil, err
	}
	for i := range all {
		p := &all[i]
		p.Target, p.NodeSelector, p.Match = nil, nil, nil // these stay as shipped
		p.RelapseWindow, p.Cooldown = window, window
		for _, d := range []*string{&p.For, &p.ProofFor} {
			if *d, err = shorter(*d, Faster); err != nil {
				return nil, fmt.Errorf("reading the shipped policy %s: %w", p.Name, err)
			}
		}
		if p.Plan, err = plan(p.Plan); err != nil {
			return nil, fmt.Errorf("reading the shipped policy %s: %w", p.Name, err)
		}
	}
	return all, nil
}

func plan(shipped []map[string]any) (short []map[string]any, err error) {
	reboots := slices.ContainsFunc(shipped, func(step map[string]any) bool { return step["step"] == "reboot" })
	for _, step := range shipped {
		if step["step"] == "replace" {
			if reboots {
				continue
			}
			step["step"] = "reboot"
		}
		for key, by := range map[string]time.Duration{"wait": waitsFaster, "timeout": Faster} {
			if d, ok := step[key].(string); ok {
				if step[key], err = shorter(d, by); err != nil {
					return nil, err
				}
			}
		}
		short = append(short, step)
	}
	if last := len(short) - 1; short[last]["step"] == "drain" {
		short = short[:last] // it made the node empty for the replacement
	}
	return short, nil
}

func customRules() (map[string]any, error) {
	taken, err := shippedPolicies()
	if err != nil {
		return nil, err
	}
	names, err := rules.Names()
	if err != nil {
		return nil, err
	}
	custom := map[string]any{}
	for _, name := range names {
		text, err := rules.Read(name)
		if err != nil {
			return nil, err
		}
		var file struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr, For string
					KeepFiringFor    string `json:"keep_firing_for"`
					Labels           map[string]string
				}
			}
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			return nil, fmt.Errorf("reading the rule %s: %w", name, err)
		}
		for _, group := range file.Groups {
			for _, r := range group.Rules {
				if !slices.ContainsFunc(taken, func(p policy) bool { return p.Name == r.Labels["remediation"] }) {
					continue
				}
				values := map[string]any{"expr": shorterExpr(r.Expr)}
				for key, shipped := range map[string]string{"for": r.For, "keepFiringFor": r.KeepFiringFor} {
					if shipped == "" {
						continue
					}
					if values[key], err = shorter(shipped, Faster); err != nil {
						return nil, fmt.Errorf("reading the rule %s: %w", name, err)
					}
				}
				custom[r.Alert] = values
			}
		}
	}
	return custom, nil
}
