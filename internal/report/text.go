package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const textWidth = 100

// Text prints the page for a terminal.
func (p *Page) Text(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, plain(p.Title))
	fmt.Fprintln(&b, p.period())
	fmt.Fprintln(&b)
	wrap(&b, "", p.Summary)
	if len(p.Figures) > 0 {
		fmt.Fprintln(&b)
		var rows [][]string
		for _, f := range p.Figures {
			rows = append(rows, []string{plain(f.Name) + ":", cell(f.Value)})
		}
		align(&b, make([]Column, 2), rows)
	}
	for _, s := range p.Sections {
		s.text(&b)
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

func (p *Page) period() string {
	return fmt.Sprintf("%s to %s (%s)", Stamp(p.From), Stamp(p.To), Duration(p.To.Sub(p.From)))
}

func (s *Section) text(b *strings.Builder) {
	if s.Table == nil && len(s.List) == 0 && s.Timeline != nil {
		return // a timeline is only drawn in HTML
	}
	fmt.Fprintf(b, "\n%s\n", plain(s.Title))
	wrap(b, "", s.Lead)
	if t := s.Table; t != nil && len(t.Rows) == 0 {
		wrap(b, "", t.Empty)
	} else if t != nil {
		header := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			header[i] = strings.ToUpper(plain(c.Name))
		}
		rows := [][]string{header}
		for _, row := range t.Rows {
			shown := make([]string, len(row))
			for i := range row {
				shown[i] = cell(row[i])
			}
			rows = append(rows, shown)
		}
		align(b, t.Columns, rows)
	}
	for _, one := range s.List {
		wrap(b, "- ", one)
	}
}

func align(b *strings.Builder, columns []Column, rows [][]string) {
	widths := make([]int, len(columns))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if columns[i].Number {
				line.WriteString(space + c + "   ")
			} else {
				line.WriteString(c + space + "   ")
			}
		}
		fmt.Fprintln(b, strings.TrimRight(line.String(), " "))
	}
}

func wrap(b *strings.Builder, lead, s string) {
	line, empty := lead, true
	for word := range strings.FieldsSeq(plain(s)) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > textWidth {
			fmt.Fprintln(b, line)
			line, empty = strings.Repeat(" ", len(lead)), true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	if !empty {
		fmt.Fprintln(b, line)
	}
}
