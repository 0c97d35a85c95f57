package hosts

import (
	"strings"
	"unicode"

	"drydock.dev/drydock/internal/text"
)

// maxText is in bytes.
const maxText = 200

func clip(s string) string { return text.Line(s, maxText) }

// lastLines returns at most most bytes of printable characters. It begins with a whole line, unless
// the last line alone is too long.
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
