package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestPrintedObjectsSteerNoTerminal: one odd character on one Node neither reaches the terminal nor keeps the fleet from
// being printed.
func TestPrintedObjectsSteerNoTerminal(t *testing.T) {
	for _, nasty := range []string{"\u202e", "\u009b31m", "\x1b[2J", "\u2028", "\u200b", "\U000e0001", "\x00"} {
		object := map[string]any{"apiVersion": "v1", "kind": "Status", "nodes": []any{map[string]any{"why": "a" + nasty + "b", "k" + nasty: "line\nbreak"}}}
		for _, format := range []output{"json", "yaml"} {
			var out strings.Builder
			require.NoError(t, printObject(format.printer(), object, &out), "%s %q", format, nasty)
			require.False(t, strings.ContainsFunc(out.String(), func(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' }), "%s %q", format, out.String())
			var back map[string]any
			if format == "json" {
				require.NoError(t, json.Unmarshal([]byte(out.String()), &back))
				require.Equal(t, object, back, "JSON loses nothing")
				continue
			}
			require.NoError(t, yaml.Unmarshal([]byte(out.String()), &back))
			require.Contains(t, out.String(), "a\ufffd")
		}
	}
}
