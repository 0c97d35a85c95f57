package ui

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/browser"
	"drydock.dev/drydock/internal/lab/missing"
	"drydock.dev/drydock/internal/lab/programs"
)

// axe-core finds what people cannot use who see badly or use only a keyboard. Its license is the
// MPL 2.0, so the test downloads it, and it is never part of this repository.
const (
	axePackage = "axe-core@4.14.1"
	axeFile    = "package/axe.min.js"
)

// axe is the JavaScript that a page runs to check itself.
func axe(t *testing.T) string {
	t.Helper()
	dir, err := programs.Keep(t.Context(), os.Stderr, strings.ReplaceAll(axePackage, "@", "-"), fetchAxe)
	missing.Need(t, "WHAT AXE-CORE FINDS", err)
	script, err := os.ReadFile(filepath.Join(dir, axeFile))
	require.NoError(t, err)
	return string(script)
}

// fetchAxe extracts one file from axe-core's npm package. npm checks the package against the
// checksum in its registry.
func fetchAxe(ctx context.Context, dir string) error {
	for _, command := range [][]string{
		{"npm", "pack", axePackage, "--silent", "--pack-destination", dir},
		{"tar", "--extract", "--gzip", "--directory", dir, "--file", filepath.Join(dir, strings.ReplaceAll(axePackage, "@", "-")+".tgz"), axeFile},
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("fetching %s: %w\n%s", axePackage, err, out)
		}
	}
	return nil
}

// finding is one finding of axe-core about one element.
type finding struct {
	Rule   string `json:"rule"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Where  string `json:"where"`
}

// findings returns axe-core's serious and critical findings about the present page. checked is how
// many elements it has checked without a finding.
func findings(t *testing.T, page *browser.Tab) (bad []finding, right int) {
	t.Helper()
	type result struct {
		Bad   []finding `json:"bad"`
		Right int       `json:"right"`
	}
	// The page's policy forbids foreign scripts, but not what a debugger evaluates.
	_, err := browser.Eval[bool](t.Context(), page, axe(t)+"; true")
	require.NoError(t, err)
	found, err := browser.Eval[result](t.Context(), page, `axe.run(document, {resultTypes: ["violations", "passes"]}).then(r => ({
		right: r.passes.reduce((n, p) => n + p.nodes.length, 0),
		bad: r.violations.filter(v => v.impact === "serious" || v.impact === "critical").flatMap(v => v.nodes.map(n =>
			({rule: v.id, impact: v.impact, help: v.help + ": " + n.failureSummary, where: n.target.join(" ") + " " + n.html.slice(0, 200)})))}))`)
	require.NoError(t, err)
	return found.Bad, found.Right
}
