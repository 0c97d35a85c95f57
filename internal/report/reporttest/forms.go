// Package reporttest parses the text and HTML of a report's page, for tests.
package reporttest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Said is the content of a page: the values of its figures by name, and the rows of its tables by
// the section's title.
type Said struct {
	Figures map[string]string
	Tables  map[string][][]string
	// Lines are the page's sentences: the summary, the leads of tables, and the lists.
	Lines []string
}

// OfHTML parses the HTML page. It ignores timelines, because tables have the same content.
func OfHTML(t testing.TB, page string) Said {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	out := Said{Figures: map[string]string{}, Tables: map[string][][]string{}}
	title, figure, lead := "", "", ""
	for n := range root.Descendants() {
		switch n.DataAtom { //nolint:exhaustive // other elements have no content
		case atom.H2:
			title, lead = words(n), ""
		case atom.Dt:
			figure = words(n)
		case atom.Dd:
			out.Figures[figure] = words(n)
		case atom.P:
			switch {
			case is(n, "summary"):
				out.Lines = append(out.Lines, words(n))
			case is(n, "lead"):
				lead = words(n)
			}
		case atom.Li:
			if !is(n.Parent, "legend") {
				out.Lines = append(out.Lines, words(n))
			}
		case atom.Tr:
			if is(n.Parent.Parent, "timeline") {
				continue
			}
			if lead != "" {
				out.Lines, lead = append(out.Lines, lead), ""
			}
			var row []string
			for c := range n.ChildNodes() {
				if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
					row = append(row, words(c))
				}
			}
			out.Tables[title] = append(out.Tables[title], row)
		}
	}
	return out
}

func is(n *html.Node, class string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "class" && a.Val == class })
}

func words(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.TrimSpace(b.String())
}

var between = regexp.MustCompile(`\s{3,}`)

// Same requires that the text has the same content as the HTML: each figure, each table cell and
// each sentence. It returns that content.
func Same(t testing.TB, text, page string) Said {
	t.Helper()
	said := OfHTML(t, page)
	require.NotEmpty(t, said.Figures)
	for name, value := range said.Figures {
		require.Regexp(t, `(?m)^`+regexp.QuoteMeta(name)+`: +`+regexp.QuoteMeta(value)+`$`, text)
	}
	flowing := strings.Join(strings.Fields(text), " ")
	for _, line := range said.Lines {
		require.Contains(t, flowing, strings.Join(strings.Fields(line), " "))
	}
	require.NotEmpty(t, said.Tables)
	for title, rows := range said.Tables {
		_, section, found := strings.Cut(text, "\n"+title+"\n")
		require.True(t, found, title)
		section, _, _ = strings.Cut(section, "\n\n")
		lines := strings.Split(strings.TrimRight(section, "\n"), "\n")
		require.GreaterOrEqual(t, len(lines), len(rows), title)
		lines = lines[len(lines)-len(rows):]
		for i, row := range rows {
			got := between.Split(strings.TrimSpace(lines[i]), -1)
			if i == 0 {
				got = between.Split(strings.ToLower(strings.TrimSpace(lines[i])), -1)
				row = lower(row)
			}
			require.Equal(t, row, got, title)
		}
	}
	return said
}

func lower(row []string) (out []string) {
	for _, cell := range row {
		out = append(out, strings.ToLower(cell))
	}
	return out
}

// Rows returns the rows of the section's table without the header, or nil if it has no table.
func (s Said) Rows(title string) [][]string {
	if rows := s.Tables[title]; len(rows) > 0 {
		return rows[1:]
	}
	return nil
}
