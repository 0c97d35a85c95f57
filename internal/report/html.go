package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var pageSource string

// pageTemplate gets only text, which html/template escapes.
var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"plain": plain, "cell": cell, "stamp": Stamp,
	"band":  func(m Mark) bool { return m == MarkGap || m == MarkStop },
	"shape": func(m Mark) string { return shapes[m] },
	"y":     func(track int) int { return trackHeight*track + trackHeight/2 + 2 },
	"tall":  func(tracks int) int { return trackHeight*tracks + 4 },
	"top":   func(track int) int { return trackHeight*track + 3 },
}).Parse(pageSource))

const trackHeight = 20

// shapes are SVG paths around the point 0,0.
var shapes = map[Mark]string{
	MarkGood:    "M-5.5 0a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0-11 0Z",
	MarkSelf:    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z",
	MarkBad:     "M-4.5-4.5L4.5 4.5M4.5-4.5L-4.5 4.5",
	MarkAgain:   "M0-6L6 5L-6 5Z",
	MarkPerson:  "M-5-5H5V5H-5Z",
	MarkOther:   "M-4.5-4.5H4.5V4.5H-4.5Z",
	MarkWould:   "M0-6L6 0L0 6L-6 0Z",
	MarkOngoing: "M-4-5.5L6 0L-4 5.5Z",
}

// HTML prints the page as one file: it has no scripts, and no fonts or pictures from elsewhere.
func (p *Page) HTML(out io.Writer) error {
	type section struct {
		*Section
		Drawn *drawn
	}
	data := struct {
		*Page
		Period   string
		Sections []section
	}{Page: p, Period: p.period()}
	for i := range p.Sections {
		s := section{Section: &p.Sections[i]}
		if s.Timeline != nil {
			s.Drawn = s.Timeline.draw()
		}
		data.Sections = append(data.Sections, s)
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, data); err != nil {
		return fmt.Errorf("making the page: %w", err)
	}
	if _, err := out.Write(b.Bytes()); err != nil {
		return fmt.Errorf("printing the page: %w", err)
	}
	return nil
}
