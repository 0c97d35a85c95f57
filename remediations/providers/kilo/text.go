package kilo

import (
	"fmt"
	"slices"
	"strings"

	"drydock.dev/drydock/internal/text"
)

// clip makes a foreign text safe to show: one printable line, cut to maxText.
func clip(s string) string { return text.Line(s, maxText) }

// named sorts the texts and joins the first maxNamed of them. It adds how many more there are.
func named(words []string, separator string) string {
	words = slices.Sorted(slices.Values(words))
	if len(words) <= maxNamed {
		return strings.Join(words, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(words[:maxNamed], separator), separator, len(words)-maxNamed)
}
