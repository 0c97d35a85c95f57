package hosts

import (
	"strings"
	"unicode"

	"drydock.dev/drydock/internal/text"
)

// maxText is how many bytes of another program's text Drydock quotes in a message.
const maxText = 200

// clip makes a text of another program safe for a message: one printable line of at most maxText
// bytes.
func clip(s string) string { return text.Line(s, maxText) }

// lastLines returns the end of a text, with printable characters only. most limits its length in
// bytes. The result begins with a whole line, unless the last line alone is too long.
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
