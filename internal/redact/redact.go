// Package redact takes secrets out of text that came from outside, whatever escapes the text has.
package redact

import (
	"cmp"
	"encoding/base64"
	"errors"
	"slices"
	"sync"

	"drydock.dev/drydock/internal/text"
)

// Keyring holds the secrets that no text may show: the ones in use, and a few from before, which an answer that comes late may
// still quote.
type Keyring struct {
	// Mark stands in the place of a secret.
	Mark string
	// Most bounds a text, in bytes; zero: 300.
	Most int

	mu      sync.Mutex
	secrets []*secret // the newest last
}

const (
	// kept is more than change hands within one call.
	kept = 8
	// maxRead bounds how much of a text is read. Nobody is shown as much.
	maxRead = 16 << 10
)

// Add keeps a secret out of all texts from now on.
func (k *Keyring) Add(text string) {
	if text == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.ContainsFunc(k.secrets, func(have *secret) bool { return have.text == text }) {
		return
	}
	k.secrets = append(k.secrets, newSecret(text))
	k.secrets = k.secrets[max(0, len(k.secrets)-kept):]
}

// AddPassword is Add for what is sent as user and password: neither the password nor both together in Base64 are shown.
func (k *Keyring) AddPassword(user, password string) {
	k.Add(password)
	k.Add(base64.StdEncoding.EncodeToString([]byte(user + ":" + password)))
}

// Text makes text that came from outside fit for people to see: without the secrets, on one line, of bounded length.
func (k *Keyring) Text(s string) string { return text.Line(k.Hide(s), cmp.Or(k.Most, 300)) }

// Hide takes the secrets out, and every part of one that has 8 characters or more. A text in which a secret stands with
// escapes is returned without these escapes. What is longer than 16 KiB is cut off.
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
			out = masked // a deeper level has all that this one has
		}
	}
	if !whole {
		return k.Mark // nobody escapes a text so often for people to read
	}
	return out
}

// Error is an error as people may see it: its text is Text's. errors.Is finds in it what it finds in the original, whose own text
// stays in.
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
