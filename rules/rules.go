// Package rules holds the alerts that Drydock ships: one file each, with a promtool test in tests/ and a runbook in
// runbooks/ of the same name.
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
