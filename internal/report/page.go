// Package report is what Drydock did in a time, and would have done: its numbers, and the one page that shows them. It reads what
// it is given and asks nobody.
//
// The page's frame ([Page], [Table], [Timeline]) knows no repair: another report puts its own words and numbers in. Each page
// prints as text and as HTML out of the same strings, so the two never differ.
package report

import (
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
)

// Page is one report as people read it: as text by [Page.Text], as a page of its own by [Page.HTML]. Its strings are plain text
// that anybody may have written: both writers make them harmless.
type Page struct {
	Title string
	// From and To are the time that the page is about, Made is when it was made.
	From, To, Made time.Time
	// Summary is what somebody reads who reads nothing else: one or a few sentences.
	Summary string
	// Figures are the few numbers that stand out.
	Figures  []Figure
	Sections []Section
	// Links lead to other pages, where something serves this one among others; none in a file.
	Links []Link
}

// Link leads to another page. Here: it is this one.
type Link struct {
	Name, Address string
	Here          bool
}

// Figure is one number that stands out, as "6m12s" with the name "median time to repair".
type Figure struct{ Value, Name string }

// Section is one part of the page, under its title: a sentence, then a table, a timeline or a list. What is nil or empty is left
// out.
type Section struct {
	Title, Lead string
	Table       *Table
	// Timeline is drawn in HTML alone: what it shows must stand in a table, too.
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
	// Number: the cells stand at the right. Long: the cells are sentences, and may break in HTML.
	Number, Long bool
}

// lean is the table without the columns in which no row has anything.
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

// plain makes a string fit for one line of a terminal or a page, whoever wrote it.
func plain(s string) string { return text.Line(s, maxCell) }

// cell is a string as a table shows it.
func cell(s string) string {
	if s = plain(s); s == "" {
		return "-"
	}
	return s
}

// Stamp is a time as people and scripts read it.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
