// Package report makes the report about what Drydock did in a period, and what it would have done.
// It computes the numbers and makes the page that shows them. It uses only its input and sends no
// requests.
//
// The page's frame ([Page], [Table], [Timeline]) knows nothing about repairs, so other reports use
// it with their own texts and numbers. Text and HTML are printed from the same strings, so they
// always say the same.
package report

import (
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
)

// Page is one report for people. Any user of the cluster may have written its strings. So
// [Page.Text] and [Page.HTML] remove control characters, and HTML also escapes the strings.
type Page struct {
	Title string
	// From and To are the report's period. Made is when the report was made.
	From, To, Made time.Time
	// Summary is a few sentences for readers who read nothing else.
	Summary  string
	Figures  []Figure
	Sections []Section
	// Links lead to other pages, if a server shows this page. A file has none.
	Links []Link
}

// Link leads to another page. Here reports that the link leads to the page that it is on.
type Link struct {
	Name, Address string
	Here          bool
}

// Figure is one important number, for example "6m12s" with the name "median time to repair".
type Figure struct{ Value, Name string }

// Section is one part of the page. Parts that are nil or empty are left out.
type Section struct {
	Title, Lead string
	Table       *Table
	// Timeline is drawn only in HTML. So a table must have the same content for the text output.
	Timeline *Timeline
	List     []string
}

// Table has rows of cells. An empty cell is printed as a dash.
type Table struct {
	Columns []Column
	Rows    [][]string
	// Empty is the sentence that replaces a table without rows.
	Empty string
}

// Column is one column of a table.
type Column struct {
	Name string
	// Number aligns right. Long says that the cells are sentences, which may wrap in HTML.
	Number, Long bool
}

func (t *Table) lean() *Table {
	if len(t.Rows) == 0 {
		return t
	}
	out := &Table{Empty: t.Empty, Rows: make([][]string, len(t.Rows))}
	for i, c := range t.Columns {
		if !slices.ContainsFunc(t.Rows, func(row []string) bool { return row[i] != "" }) {
			continue
		}
		out.Columns = append(out.Columns, c)
		for j, row := range t.Rows {
			out.Rows[j] = append(out.Rows[j], row[i])
		}
	}
	return out
}

// maxCell is in bytes.
const maxCell = 2 << 10

func plain(s string) string { return text.Line(s, maxCell) }

func cell(s string) string {
	if s = plain(s); s == "" {
		return "-"
	}
	return s
}

// Stamp returns the time in UTC in the format RFC 3339.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
