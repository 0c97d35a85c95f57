package main

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func newOutput(t *testing.T, format string) *output {
	t.Helper()
	var o output
	o.bind(&cobra.Command{})
	o.format = format
	require.NoError(t, o.check())
	return &o
}

// TestPrintedObjectsSteerNoTerminal: one odd character on one Node neither reaches the terminal nor
// keeps the fleet from being printed.
func TestPrintedObjectsSteerNoTerminal(t *testing.T) {
	for _, nasty := range []string{"\u202e", "\u009b31m", "\x1b[2J", "\u2028", "\u200b", "\U000e0001", "\x00"} {
		object := map[string]any{"apiVersion": "v1", "kind": "Status", "nodes": []any{map[string]any{"why": "a" + nasty + "b", "k" + nasty: "line\nbreak"}}}
		for _, format := range []string{"json", "yaml", "jsonpath={.nodes}", "go-template={{.nodes}}", "custom-columns=W:.why"} {
			var out strings.Builder
			o := newOutput(t, format)
			object := maps.Clone(object)
			object["repairs"] = object["nodes"]
			require.NoError(t, o.print(object, &out), "%s %q", format, nasty)
			require.False(t, strings.ContainsFunc(out.String(), func(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' }), "%s %q", format, out.String())
			require.Contains(t, out.String(), "b")
			if format != "json" && format != "yaml" {
				continue
			}
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
