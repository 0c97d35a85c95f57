package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	require.NoError(t, err)
	return text
}

// TestThePictureShowsWhatThePluginPrints reads the SVG's texts, as a browser does, and holds them
// against the golden file.
func TestThePictureShowsWhatThePluginPrints(t *testing.T) {
	t.Parallel()
	output := read(t, golden)
	drawn, err := draw(string(output))
	require.NoError(t, err)
	require.Equal(t, string(drawn), string(read(t, picture)), "run make generate")

	var svg struct {
		Texts []struct {
			Rest bool   `xml:"data-rest,attr"`
			Text string `xml:",chardata"`
		} `xml:"text"`
	}
	require.NoError(t, xml.Unmarshal(read(t, picture), &svg))
	var seen []string
	for _, text := range svg.Texts {
		if text.Rest {
			seen[len(seen)-1] += text.Text
			continue
		}
		seen = append(seen, text.Text)
	}
	require.Equal(t, "…", seen[len(seen)-1], "the cut is marked")
	seen = seen[:len(seen)-1]
	var printed []string
	for line := range strings.Lines(string(output)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && len(printed) < len(seen) {
			printed = append(printed, line)
		}
	}
	require.Equal(t, printed, seen)
	for _, text := range []string{"$ kubectl drydock status", "$ kubectl drydock why node-3 --alertmanager http://localhost:9093", "node-3 is not repaired: Silenced and AtLimit hold it, until 2026-11-20T22:00:00Z (in 55m) at the earliest."} {
		require.Contains(t, seen, text)
	}
}

// TestWhatAPersonWroteIsTextInThePicture, whatever it looks like, and a long line loses nothing
// where it is wrapped.
func TestWhatAPersonWroteIsTextInThePicture(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("<b>&ä…", 50)
	drawn, err := draw(long)
	require.NoError(t, err)
	var svg struct {
		Texts []string `xml:"text"`
	}
	require.NoError(t, xml.Unmarshal(drawn, &svg))
	require.Greater(t, len(svg.Texts), 1)
	require.Equal(t, long, strings.Join(svg.Texts, ""))
}
