// Package redact removes secrets from text that came from outside, whatever escapes the text has.
package redact

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"

	"drydock.dev/drydock/internal/text"
)

// Keyring holds the secrets that no text may show: the current ones, and a few earlier ones, which
// a late answer may still quote.
type Keyring struct {
	// Mark replaces a secret.
	Mark string
	// Most bounds a text, in bytes. Zero: 300.
	Most int

	mu      sync.Mutex
	secrets []*secret // the last used one last
}

const (
	// kept is more secrets than one request has, with those that change within one call.
	kept = 32
	// maxRead bounds how much of a text is read. More is never shown.
	maxRead = 16 << 10
)

// Add hides a secret in all texts from now on. A secret that is used again is kept longer than the
// others.
func (k *Keyring) Add(text string) {
	if text == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if i := slices.IndexFunc(k.secrets, func(have *secret) bool { return have.text == text }); i >= 0 {
		again := k.secrets[i]
		k.secrets = append(slices.Delete(k.secrets, i, i+1), again)
		return
	}
	k.secrets = append(k.secrets, newSecret(text))
	k.secrets = k.secrets[max(0, len(k.secrets)-kept):]
}

// AddPassword is Add for user and password: it hides the password, and both together in Base64.
func (k *Keyring) AddPassword(user, password string) {
	k.Add(password)
	k.Add(base64.StdEncoding.EncodeToString([]byte(user + ":" + password)))
}

// Text makes text from outside fit for people: without the secrets, on one line, of bounded length.
func (k *Keyring) Text(s string) string { return text.Line(k.Hide(s), cmp.Or(k.Most, 300)) }

// Quoted returns text from outside behind a colon, as the end of a sentence; empty: there is none.
func (k *Keyring) Quoted(s string) string {
	if s = k.Text(s); s == "" {
		return ""
	}
	return fmt.Sprintf(": %q", s)
}

// Hide removes the secrets, and every part of one with 8 or more characters. It returns a text with
// an escaped secret without these escapes. It cuts off a text after 16 KiB.
func (k *Keyring) Hide(s string) string {
	s = s[:min(len(s), maxRead)]
	k.mu.Lock()
	secrets := slices.Clone(k.secrets)
	k.mu.Unlock()
	if len(secrets) == 0 {
		return s
	}
	out := s
	levels, whole := unescaped(s)
	for _, level := range levels {
		if masked, found := mask(level, k.Mark, secrets); found {
			out = masked // a deeper level includes this one
		}
	}
	if !whole {
		return k.Mark // no text for people has so many escapes
	}
	return out
}

// Error returns an error that people may see: its text is passed through Text. errors.Is works as
// with the original, whose own text stays hidden.
func (k *Keyring) Error(err error) error {
	if err == nil {
		return nil
	}
	return &cleanError{text: k.Text(err.Error()), original: err}
}

type cleanError struct {
	text     string
	original error
}

func (e *cleanError) Error() string { return e.text }

func (e *cleanError) Is(target error) bool { return errors.Is(e.original, target) }
