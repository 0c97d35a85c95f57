// Package text makes texts of other people and programs safe to show. Drydock uses it everywhere. A
// text on a Node, in an alert or in another program's answer must never control a terminal or look
// like another text.
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

// Shows reports whether a character is visible as itself. Control characters, invisible characters
// and characters that change the writing direction are not.
func Shows(r rune) bool { return r != utf8.RuneError && unicode.IsGraphic(r) }

// Line returns s as one line of at most n bytes. If it cuts s, the line ends in "…". Runs of
// invisible characters and white space become one space.
func Line(s string, n int) string {
	if plain(s) && len(s) <= n {
		return s
	}
	if most := 4*n + 64; len(s) > most { // do not process what would be cut anyway
		s = s[:most]
	}
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return !Shows(r) || unicode.IsSpace(r) }), " ")
	if len(s) <= n {
		return s
	}
	return strings.TrimRight(strings.ToValidUTF8(s[:n], ""), " ") + "…"
}

// Quoted returns the names in quotes, sorted and without duplicates, as one line of at most n
// bytes.
func Quoted(names []string, n int) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for i, s := range names {
		names[i] = fmt.Sprintf("%q", s)
	}
	return Line(strings.Join(names, ", "), n)
}

// plain reports whether s is printable ASCII with single spaces. Most texts are.
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

// Visible returns s with U+FFFD instead of each invisible character. It keeps line breaks and tabs.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if Shows(r) || r == '\n' || r == '\t' {
			return r
		}
		return utf8.RuneError
	}, s)
}

// Writer passes text through Visible on its way to Out. A character may be split between two
// writes.
type Writer struct {
	Out io.Writer

	rest []byte // the first bytes of a character that is split between two writes
}

// Write implements io.Writer.
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

// JSONWriter writes JSON with \u escapes instead of invisible characters, so that it cannot control
// a terminal. Each Write must contain whole characters.
type JSONWriter struct{ Out io.Writer }

// Write implements io.Writer.
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

// Count returns a number with its noun: "1 node", "2 nodes". The noun's plural must end in s.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Age formats a duration in days, or as the configuration writes it, without unneeded seconds.
func Age(d time.Duration) string {
	if day := 24 * time.Hour; d >= 2*day {
		return fmt.Sprintf("%d days", d/day)
	}
	if d >= time.Hour {
		d = d.Truncate(time.Minute)
	}
	return Duration(d.Truncate(time.Second))
}

// Duration formats a duration as the configuration writes it, without zero units, for example
// "10m".
func Duration(d time.Duration) string {
	s := d.String()
	for _, empty := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, empty) {
			s = s[:len(s)-2]
		}
	}
	return s
}
