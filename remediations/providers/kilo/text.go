package kilo

import (
	"fmt"
	"slices"
	"strings"

	"drydock.dev/drydock/internal/text"
)

func clip(s string) string { return text.Line(s, maxText) }

func named(words []string, separator string) string {
	words = slices.Sorted(slices.Values(words))
	if len(words) <= maxNamed {
		return strings.Join(words, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(words[:maxNamed], separator), separator, len(words)-maxNamed)
}
