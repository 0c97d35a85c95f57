// Package redact takes secrets out of text that came from outside, in each spelling that an answer may quote them in.
package redact

import (
	"cmp"
	"encoding/json"
	"errors"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
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

	mu    sync.Mutex
	forms [][]string // of one secret each, the newest last
}

// kept is more than change hands within one call.
const kept = 4

// Add keeps a secret out of all texts from now on.
func (k *Keyring) Add(secret string) {
	if secret == "" {
		return
	}
	forms := spellings(secret)
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.ContainsFunc(k.forms, func(have []string) bool { return have[0] == secret }) {
		return
	}
	k.forms = append(k.forms, forms)
	k.forms = k.forms[max(0, len(k.forms)-kept):]
}

// spellings are the secret itself, and as it stands in JSON, in a page and in a URL.
func spellings(secret string) []string {
	inJSON, _ := json.Marshal(secret) // a string never fails
	quoted := strconv.Quote(secret)
	all := []string{
		secret, string(inJSON[1 : len(inJSON)-1]), quoted[1 : len(quoted)-1], html.EscapeString(secret), url.QueryEscape(secret), url.PathEscape(secret),
	}
	out := all[:1]
	for _, form := range all[1:] {
		if !slices.Contains(out, form) {
			out = append(out, form)
		}
	}
	return out
}

// Text makes text that came from outside fit for people to see: without the secrets, on one line, of bounded length.
func (k *Keyring) Text(s string) string { return text.Line(k.Hide(s), cmp.Or(k.Most, 300)) }

// partShown is how much of a secret may stand at the end of a text that was cut off there.
const partShown = 8

// Hide takes the secrets out, and the beginning of one at the end of the text, which may have been cut off there. It leaves the rest.
func (k *Keyring) Hide(s string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, forms := range k.forms {
		for _, form := range forms {
			s = strings.ReplaceAll(s, form, k.Mark)
			for n := len(form) - 1; n >= partShown; n-- {
				s = strings.TrimSuffix(s, form[:n])
			}
		}
	}
	return s
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
