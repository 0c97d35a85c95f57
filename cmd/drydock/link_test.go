package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// One call of a method by a name that the linker cannot see, anywhere in what the program is made
// of, and it keeps every exported method of every type: 25 MB more. The usual one is in
// text/template.
func TestTheLinkerMayDropWhatNothingCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("links the program")
	}
	// With the flags of the other tests' programs, whose packages the compiler's cache has.
	link := exec.CommandContext(t.Context(), "../../test/go", "build", "-ldflags=-dumpdep", "-o", filepath.Join(t.TempDir(), "drydock"), ".")
	out, err := link.CombinedOutput()
	require.NoError(t, err)
	from, first := map[string]string{}, ""
	for line := range strings.Lines(string(out)) {
		a, b, found := strings.Cut(strings.TrimSpace(line), " -> ")
		if !found {
			continue
		}
		a, _, _ = strings.Cut(a, " <")
		name, marks, _ := strings.Cut(b, " <")
		from[name] = a
		if first == "" && strings.Contains(marks, "ReflectMethod") {
			first = name
		}
	}
	require.Greater(t, len(from), 1000, "the linker says what needs what")
	var way []string
	for at := first; at != "" && len(way) < 40; at = from[at] {
		way = append(way, at)
	}
	require.Empty(t, way, "a method is called by its name, by way of these")
}
