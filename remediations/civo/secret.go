package civo

import (
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

// keyring holds the keys that no text may show: the one in use, and a few from
// before, which an answer that comes late may still quote.
type keyring struct {
	mu    sync.Mutex
	forms [][]string // of one key each, the newest last
}

// keysKept is more than change hands within one call.
const keysKept = 4

func (k *keyring) add(key string) {
	forms := spellings(key)
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.ContainsFunc(k.forms, func(have []string) bool { return have[0] == key }) {
		return
	}
	k.forms = append(k.forms, forms)
	k.forms = k.forms[max(0, len(k.forms)-keysKept):]
}

// spellings are the key itself, and as it stands in JSON, in a page and in a URL.
func spellings(key string) []string {
	inJSON, _ := json.Marshal(key) // a string never fails
	quoted := strconv.Quote(key)
	all := []string{
		key, string(inJSON[1 : len(inJSON)-1]), quoted[1 : len(quoted)-1], html.EscapeString(key), url.QueryEscape(key), url.PathEscape(key),
	}
	out := all[:1]
	for _, form := range all[1:] {
		if !slices.Contains(out, form) {
			out = append(out, form)
		}
	}
	return out
}

// redact makes text that came from outside fit for people to see: without the
// key, on one line, of bounded length.
func (k *keyring) redact(text string) string { return short(k.hide(text)) }

func (k *keyring) hide(text string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, forms := range k.forms {
		for _, form := range forms {
			text = strings.ReplaceAll(text, form, "[API key]")
		}
	}
	return text
}

// clean is an error as people may see it.
func (k *keyring) clean(err error) error {
	if err == nil {
		return nil
	}
	return &cleanError{text: k.redact(err.Error()), original: err}
}

// cleanError is an error without the API key, which a page of some proxy may
// repeat, and without the rest of that page.
type cleanError struct {
	text     string
	original error
}

func (e *cleanError) Error() string { return e.text }

// Is lets civogo's sentinels and a context's errors be found, and keeps the
// original's text in.
func (e *cleanError) Is(target error) bool { return errors.Is(e.original, target) }

// short makes foreign text fit for an Event: one line of bounded length.
func short(s string) string { return text.Line(s, 300) }
