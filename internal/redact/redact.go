// Package redact removes secrets from texts of other programs, also if the text has them in an
// escaped form.
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

// Keyring has the secrets that no text may show. It also has earlier ones, because a late answer
// may still quote them.
type Keyring struct {
	// Mark is the text that replaces a secret.
	Mark string
	// Most is the largest length of a text, in bytes. The default is 300.
	Most int

	mu      sync.Mutex
	secrets []*secret // in order of use: the most recently used is last
}

const (
	// kept bounds the secrets. One request has fewer, even if some change during the call.
	kept = 32
	// maxRead is in bytes. The rest of a text is never shown.
	maxRead = 16 << 10
)

// Add adds a secret, which all later texts hide. Adding it again makes it the most recently used
// one.
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

// AddPassword adds the password, and user and password together in Base64, as in basic
// authentication.
func (k *Keyring) AddPassword(user, password string) {
	k.Add(password)
	k.Add(base64.StdEncoding.EncodeToString([]byte(user + ":" + password)))
}

// Text makes a foreign text safe to show: without secrets, on one line, and cut.
func (k *Keyring) Text(s string) string { return text.Line(k.Hide(s), cmp.Or(k.Most, 300)) }

// Quoted returns ": " and the foreign text in quotes, for the end of a sentence. If the text is
// empty, it returns "".
func (k *Keyring) Quoted(s string) string {
	if s = k.Text(s); s == "" {
		return ""
	}
	return fmt.Sprintf(": %q", s)
}

// Hide replaces each secret, and each part of a secret with at least 8 characters, by Mark. If it
// finds an escaped secret, it returns the text without escapes. It cuts the text after 16 KiB.
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
			out = masked // a deeper level also contains the secrets of this one
		}
	}
	if !whole {
		return k.Mark // a text with so many escapes is not for people
	}
	return out
}

// Error returns an error with a safe text. errors.Is finds the original error.
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
