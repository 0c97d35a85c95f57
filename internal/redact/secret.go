package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"net/url"
	"strings"
	"unicode"

	"drydock.dev/drydock/internal/text"
)

// part is the shortest part of a secret, in characters, that a text must not contain.
const part = 8

type secret struct {
	text string
	// parts has each sequence of 8 bytes (the constant part) in the secret, and in its Base64 and
	// hexadecimal forms.
	parts map[uint64]struct{}
	// short has forms of less than 8 bytes. A search looks only for the whole form.
	short [][]byte
}

func newSecret(s string) *secret {
	out := &secret{text: s, parts: map[uint64]struct{}{}}
	levels, _ := unescaped(s) // a text may contain the secret with its escapes decoded once too often
	for _, level := range append(levels, url.QueryEscape(s)) {
		out.add(level)
		out.add(hex.EncodeToString([]byte(level)))
		out.add(strings.ToUpper(hex.EncodeToString([]byte(level))))
		for before := range 3 { // text before the secret shifts its Base64 form
			for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				encoded := encoding.EncodeToString(append(make([]byte, before), level...))
				encoded = encoded[(before*8+5)/6:]
				if (before+len(level))%3 != 0 {
					encoded = encoded[:max(0, len(encoded)-1)] // the last character depends on the following text
				}
				if len(encoded) >= part {
					out.add(encoded)
				}
			}
		}
	}
	return out
}

func (s *secret) add(form string) {
	c, _ := compact(form)
	if len(c) < part {
		if len(c) > 0 {
			s.short = append(s.short, c)
		}
		return
	}
	for i := 0; i+part <= len(c); i++ {
		s.parts[binary.LittleEndian.Uint64(c[i:])] = struct{}{}
	}
}

// compact removes white space and invisible characters, because these may be inserted into a
// secret. at has the position of each byte in s.
func compact(s string) (c []byte, at []int) {
	for i, r := range s {
		if r != 0xfffd && (!text.Shows(r) || unicode.IsSpace(r)) {
			continue
		}
		end := i + 1
		for end < len(s) && s[end]&0xc0 == 0x80 {
			end++
		}
		for j := i; j < end; j++ {
			c, at = append(c, s[j]), append(at, j)
		}
	}
	return c, at
}

func mask(s, mark string, secrets []*secret) (masked string, found bool) {
	c, at := compact(s)
	hidden := make([]bool, len(s))
	hide := func(from, to int) {
		for found = true; from < to; from++ {
			hidden[at[from]] = true
		}
	}
	for _, one := range secrets {
		for i := 0; i+part <= len(c); i++ {
			if _, there := one.parts[binary.LittleEndian.Uint64(c[i:])]; there {
				hide(i, i+part)
			}
		}
		for _, form := range one.short {
			for from := 0; ; {
				i := bytes.Index(c[from:], form)
				if i < 0 {
					break
				}
				hide(from+i, from+i+len(form))
				from += i + len(form)
			}
		}
	}
	if !found {
		return s, false
	}
	var out strings.Builder
	for i := range len(s) {
		switch {
		case !hidden[i]:
			out.WriteByte(s[i])
		case i == 0 || !hidden[i-1]:
			out.WriteString(mark)
		}
	}
	return out.String(), true
}
