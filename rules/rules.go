// Package rules holds the alerts that Drydock ships. Each alert has one file, with a promtool test
// of the same name in tests/ and a runbook of the same name in runbooks/.
//
// Each alert has a severity, a summary, a description, a runbook_url and the labels of its target.
// These labels are cluster and node, or cluster and location for the mesh. An alert about a sidecar
// also names the node that hosts the pod, for inhibition rules. Routes use the label remediation,
// which has one of three values:
//
//   - the value that a shipped policy matches, for example node-not-ready: the alert goes to
//     Drydock and to people;
//   - none: the alert goes only to people, because a repair of the node does not help, or because
//     the alert is about Drydock itself;
//   - drydock-self-test: the alert goes only to Drydock.
//
// Missing metrics are not a fault of a node, so they do not start an alert about a node. But an
// alert about a node can end because metrics are missing, and this must not look like a cure. So
// the alert DrydockSourceDown fires for missing metrics.
package rules

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

//go:embed *.yaml runbooks/*.md
var files embed.FS

// Names returns the rule files' names, sorted.
func Names() ([]string, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the shipped rules: %w", err)
	}
	return names, nil
}

// Read returns the content of one rule file.
func Read(name string) ([]byte, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the shipped rule %s: %w", name, err)
	}
	return data, nil
}

// Runbooks returns the names of the alerts that have a runbook, sorted.
func Runbooks() ([]string, error) {
	names, err := fs.Glob(files, "runbooks/*.md")
	if err != nil {
		return nil, fmt.Errorf("listing the runbooks: %w", err)
	}
	for i, name := range names {
		names[i] = strings.TrimSuffix(path.Base(name), ".md")
	}
	return names, nil
}

// Runbook returns the content of an alert's runbook.
func Runbook(alert string) (string, error) {
	data, err := files.ReadFile("runbooks/" + alert + ".md")
	if err != nil {
		return "", fmt.Errorf("reading the runbook of %s: %w", alert, err)
	}
	return string(data), nil
}

// Rule is one shipped rule.
type Rule struct {
	Alert string `json:"alert"`
	// Only those that the rule itself sets.
	Labels map[string]string `json:"labels"`
	// How long a fault lasts before the alert fires, for example "5 minutes", according to the
	// rule's description. Empty if that names no time. It is longer than the rule's `for` if the
	// expression also looks back in time.
	Waits string `json:"-"`
}

// Wait returns Waits as a duration, or zero.
func (r Rule) Wait() time.Duration {
	amount, unit, found := strings.Cut(r.Waits, " ")
	if !found {
		return 0
	}
	wait, _ := time.ParseDuration(amount + unit[:1]) // no error: the pattern waits matches only whole minutes and hours
	return wait
}

var waits = regexp.MustCompile(`(?i)\bfor (\d+ (?:minutes?|hours?))\b`)

// Shipped are the shipped rules, sorted by their alerts' names.
var Shipped = sync.OnceValues(func() ([]Rule, error) {
	names, err := Names()
	if err != nil {
		return nil, err
	}
	var out []Rule
	for _, name := range names {
		data, err := Read(name)
		if err != nil {
			return nil, err
		}
		var file struct {
			Groups []struct {
				Rules []struct {
					Rule
					Annotations struct{ Description string } `json:"annotations"`
				} `json:"rules"`
			} `json:"groups"`
		}
		if err := yaml.Unmarshal(data, &file); err != nil {
			return nil, fmt.Errorf("decoding the shipped rule %s: %w", name, err)
		}
		for _, g := range file.Groups {
			for _, r := range g.Rules {
				if said := waits.FindStringSubmatch(r.Annotations.Description); said != nil {
					r.Waits = said[1]
				}
				out = append(out, r.Rule)
			}
		}
	}
	return out, nil
})
