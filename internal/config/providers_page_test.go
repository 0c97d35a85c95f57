package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePageOfProvidersSaysWhatEachCarriesOut: each provider of machines has its column in
// docs/providers/README.md, with exactly its steps.
func TestThePageOfProvidersSaysWhatEachCarriesOut(t *testing.T) {
	page, err := os.ReadFile("../../docs/providers/README.md")
	require.NoError(t, err)
	var rows [][]string
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 3 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	named := regexp.MustCompile("`([a-zA-Z-]+)`")
	at := slices.IndexFunc(rows, func(r []string) bool { return r[0] == "configuration" })
	require.GreaterOrEqual(t, at, 0)
	columns := 0
	for _, s := range sections {
		_, reboots := s.Steps["reboot"]
		_, replaces := s.Steps["replace"]
		_, asks := s.Steps["external"]
		if !reboots && !replaces && !asks {
			continue
		}
		column := slices.Index(rows[at], "`providers."+s.Key+"`")
		require.Positive(t, column, "%s has no column", s.Key)
		columns++
		var says, does []string
		for _, row := range rows {
			if steps := named.FindAllStringSubmatch(row[0], -1); steps != nil && row[column] != "" {
				for _, step := range steps {
					says = append(says, step[1])
				}
			}
		}
		for step := range s.Steps {
			does = append(does, step)
		}
		slices.Sort(says)
		slices.Sort(does)
		require.Equal(t, does, slices.Compact(says), s.Key)
	}
	require.Len(t, rows[at], columns+1, "a column of nobody")
}

// TestEachProvidersPageHasItsParts: an example, which other tests of this package load, and the
// traps.
func TestEachProvidersPageHasItsParts(t *testing.T) {
	page, err := os.ReadFile("../../docs/providers/README.md")
	require.NoError(t, err)
	_, row, found := strings.Cut(string(page), "\n| page |")
	require.True(t, found)
	row, _, _ = strings.Cut(row, "\n")
	pages := regexp.MustCompile(`\(([a-z0-9-]+\.md)\)`).FindAllStringSubmatch(row, -1)
	require.GreaterOrEqual(t, len(pages), 7)
	for _, p := range pages {
		text, blocks := examples(t, "providers/"+p[1])
		require.NotEmpty(t, blocks, p[1])
		require.Contains(t, text, "\n## Traps\n", p[1])
	}
}
