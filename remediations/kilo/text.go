package kilo

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// clip makes foreign text fit for people to see: one line of printable characters, of bounded length.
func clip(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }), " ")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return text
}

// named joins the first few of the words, and says how many more there are.
func named(words []string, separator string) string {
	words = slices.Sorted(slices.Values(words))
	if len(words) <= maxNamed {
		return strings.Join(words, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(words[:maxNamed], separator), separator, len(words)-maxNamed)
}
