package redact

import (
	"html"
	"strconv"
	"strings"
)

// maxEscapes bounds the decoded levels. A JSON text inside JSON, in an HTML page, in a URL has
// four.
const maxEscapes = 8

// unescaped returns s, and s with each further level of escapes decoded. whole is false if s has
// more levels than maxEscapes.
func unescaped(s string) (levels []string, whole bool) {
	levels = []string{s}
	for range maxEscapes {
		before := s
		for _, undo := range []func(string) string{html.UnescapeString, percent, backslash} {
			if next := undo(s); next != s {
				levels, s = append(levels, next), next
			}
		}
		if s == before {
			return levels, true
		}
	}
	return levels, false
}

func percent(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if n, ok := digits(s, i+1, 2, 16); ok && s[i] == '%' {
			out.WriteByte(byte(n))
			i += 2
			continue
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

func backslash(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out.WriteByte(s[i])
			continue
		}
		i++
		u, four := digits(s, i+1, 4, 16)
		x, two := digits(s, i+1, 2, 16)
		o, octal := digits(s, i, 3, 8)
		switch c := s[i]; {
		case c == 'u' && four:
			out.WriteRune(rune(u))
			i += 4
		case c == 'x' && two:
			out.WriteByte(byte(x))
			i += 2
		case octal && o < 256:
			out.WriteByte(byte(o))
			i += 2
		case strings.IndexByte(`\/"'`, c) >= 0:
			out.WriteByte(c)
		case strings.IndexByte("nrt", c) >= 0:
			out.WriteByte(' ')
		default:
			out.WriteByte('\\')
			out.WriteByte(c)
		}
	}
	return out.String()
}

func digits(s string, i, n, base int) (int, bool) {
	if i+n > len(s) || strings.ContainsAny(s[i:i+n], "+-_") {
		return 0, false
	}
	v, err := strconv.ParseUint(s[i:i+n], base, 32)
	return int(v), err == nil
}
