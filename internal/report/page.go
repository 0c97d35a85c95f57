// Package report makes the report of what Drydock did in a time, and would have done: its numbers,
// and the page that shows them. It uses only its input and sends no requests.
//
// The page's frame ([Page], [Table], [Timeline]) is independent of repairs: another report uses it
// with its own texts and numbers. Text and HTML are printed from the same strings, so the two never
// differ.
package report

import (
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
)

// Page is one report for people: as text by [Page.Text], as a file by [Page.HTML]. Its strings are
// plain text that any user may have written: both writers make them harmless.
type Page struct {
	Title string
	// From and To are the time of the report. Made is when it was made.
	From, To, Made time.Time
	// Summary is one or a few sentences for readers who read nothing else.
	Summary string
	// Figures are the few most important numbers.
	Figures  []Figure
	Sections []Section
	// Links lead to other pages, if a server has this page among others. A file has none.
	Links []Link
}

// Link leads to another page. Here: it is this page.
type Link struct {
	Name, Address string
	Here          bool
}

// Figure is one important number, for example "6m12s" with the name "median time to repair".
type Figure struct{ Value, Name string }

// Section is one part of the page, under its title: a sentence, then a table, a timeline or a list.
// Nil or empty parts are left out.
type Section struct {
	Title, Lead string
	Table       *Table
	// Timeline is drawn only in HTML: a table must have its content, too.
	Timeline *Timeline
	List     []string
}

// Table is rows of cells. An empty cell prints as a dash.
type Table struct {
	Columns []Column
	Rows    [][]string
	// Empty is the sentence for no rows.
	Empty string
}

// Column is one column of a table.
type Column struct {
	Name string
	// Number: the cells are right-aligned. Long: the cells are sentences, and may wrap in HTML.
	Number, Long bool
}

// lean returns the table without its empty columns.
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

// maxCell bounds one string of a page.
const maxCell = 2 << 10

// plain makes any string fit for one line of a terminal or a page.
func plain(s string) string { return text.Line(s, maxCell) }

// cell returns a string as a table shows it.
func cell(s string) string {
	if s = plain(s); s == "" {
		return "-"
	}
	return s
}

// Stamp formats a time for people and scripts.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
