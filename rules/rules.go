// Package rules holds the alerts that Drydock ships: one file each, with a promtool test in tests/ and a runbook in
// runbooks/ of the same name.
//
// Each carries a severity, the labels of its target (cluster and node, or of the mesh a location; of a sidecar the node
// that it runs on, too, so that a rule of inhibition can go by it), a summary, a description and a runbook_url, and the
// label remediation, which routes go by. It is one of three:
//
//   - what a shipped policy matches, as node-not-ready: the alert goes to Drydock and to people;
//   - none: the alert goes to people alone, because no repair of a node helps, or because it is about Drydock itself;
//   - drydock-self-test: the alert goes to Drydock alone.
//
// An alert that ends because its metrics have ended must not look like a cure, and one must not fire for that either: no
// data is never a fault of a node. It is DrydockSourceDown that says so.
package rules

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"sync"

	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// Names returns the rule files' names, sorted.
func Names() ([]string, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the shipped rules: %w", err)
	}
	return names, nil
}

// Read returns one rule file as it is shipped.
func Read(name string) ([]byte, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the shipped rule %s: %w", name, err)
	}
	return data, nil
}

// Rule is what one shipped rule says about its alert.
type Rule struct {
	Alert string `json:"alert"`
	// Labels are those that the rule itself sets.
	Labels map[string]string `json:"labels"`
	// Waits is how long a fault lasts before the alert fires, in the words of the rule's description, for example "5 minutes". It is
	// longer than the rule's `for` where the expression looks back, too. Empty: the description names no time.
	Waits string `json:"-"`
}

// waits finds the time in a description: "has not been Ready for 5 minutes".
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
