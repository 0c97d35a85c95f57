// Package text makes text that others wrote fit for people to see. All of Drydock uses it: what stands on a Node, in an
// alert or in an answer of another program must never steer a terminal, or show as something that it is not.
package text

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Shows says whether a character is visible as itself. Control characters, overrides of the direction of writing and
// invisible characters are not.
func Shows(r rune) bool { return r != utf8.RuneError && unicode.IsGraphic(r) }

// Line returns s as one line of at most n bytes, and "…" where it was cut. Everything that does not show, and every run of
// white space, becomes one space.
func Line(s string, n int) string {
	if plain(s) && len(s) <= n {
		return s
	}
	if most := 4*n + 64; len(s) > most { // the rest would be cut anyway
		s = s[:most]
	}
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return !Shows(r) || unicode.IsSpace(r) }), " ")
	if len(s) <= n {
		return s
	}
	return strings.TrimRight(strings.ToValidUTF8(s[:n], ""), " ") + "…"
}

// Quoted returns the names that others wrote in quotes, each once and in order, as one line of at most n bytes.
func Quoted(names []string, n int) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for i, s := range names {
		names[i] = fmt.Sprintf("%q", s)
	}
	return Line(strings.Join(names, ", "), n)
}

// plain says whether s is ASCII in single spaces, as most texts are.
func plain(s string) bool {
	after := byte(' ')
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c > '~' || c == ' ' && after == ' ' {
			return false
		}
		after = c
	}
	return s == "" || after != ' '
}

// Visible returns s with U+FFFD in place of each character that does not show. Line breaks and tabs stay.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if Shows(r) || r == '\n' || r == '\t' {
			return r
		}
		return utf8.RuneError
	}, s)
}

// Writer passes text on as Visible shows it, for a terminal. A character may be cut between two writes.
type Writer struct {
	Out io.Writer

	rest []byte // the beginning of a character
}

// Write is of io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	all := append(w.rest, p...)
	whole := len(all)
	for n := 1; n < utf8.UTFMax && n <= len(all); n++ {
		if last := all[len(all)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				whole -= n
			}
			break
		}
	}
	w.rest = append([]byte{}, all[whole:]...)
	if _, err := io.WriteString(w.Out, Visible(string(all[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// JSONWriter passes JSON on, with \u escapes in place of characters that do not show: the same data, which no terminal
// obeys. Each Write must hold whole characters.
type JSONWriter struct{ Out io.Writer }

// Write is of io.Writer.
func (w JSONWriter) Write(p []byte) (int, error) {
	var b strings.Builder
	for _, r := range string(p) {
		switch {
		case Shows(r) || r == '\n' || r == '\t' || r == utf8.RuneError:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	if _, err := io.WriteString(w.Out, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Age is a time span as people say it: in days, or as the configuration writes it without seconds that nobody needs.
func Age(d time.Duration) string {
	if day := 24 * time.Hour; d >= 2*day {
		return fmt.Sprintf("%d days", d/day)
	}
	if d >= time.Hour {
		d = d.Truncate(time.Minute)
	}
	return Duration(d.Truncate(time.Second))
}

// Duration is a time span as the configuration writes it: 10m, and not 10m0s.
func Duration(d time.Duration) string {
	s := d.String()
	for _, empty := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, empty) {
			s = s[:len(s)-2]
		}
	}
	return s
}
