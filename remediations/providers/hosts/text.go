package hosts

import (
	"strings"
	"unicode"

	"drydock.dev/drydock/internal/text"
)

// maxText bounds quoted foreign text.
const maxText = 200

// clip makes foreign text safe to show: one line of bounded length.
func clip(s string) string { return text.Line(s, maxText) }

// lastLines returns the end of a text: whole lines if there is room for one, of printable
// characters, in at most that many bytes.
func lastLines(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	text = strings.Trim(text, "\n")
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	if _, whole, ok := strings.Cut(text, "\n"); ok {
		text = whole
	}
	return strings.ToValidUTF8(text, "")
}
