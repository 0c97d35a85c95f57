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
