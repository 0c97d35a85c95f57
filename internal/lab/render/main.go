// Command render writes deploy/drydock.yaml: what the chart renders to with its defaults.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
)

func main() {
	if err := render(); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func render() error {
	root, err := programs.ModuleRoot()
	if err != nil {
		return err
	}
	manifests, err := lab.RenderChart("drydock", "drydock", nil)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("# Rendered from charts/drydock by `make generate`; change the chart, not this file.\n")
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		fmt.Fprintf(&b, "---\n# %s\n%s\n", name, strings.Trim(manifests[name], "\n-"))
	}
	return os.WriteFile(filepath.Join(root, "deploy", "drydock.yaml"), []byte(b.String()), 0o644)
}
