package hosts

import (
	"strings"
	"unicode"

	"drydock.dev/drydock/internal/text"
)

// maxText is how many bytes of a foreign text are quoted.
const maxText = 200

// clip makes a foreign text safe to show: one printable line, cut to maxText.
func clip(s string) string { return text.Line(s, maxText) }

// lastLines returns the last lines of a text, in at most that many bytes, with printable characters
// only. Its first line is complete, unless the last line alone is too long.
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
