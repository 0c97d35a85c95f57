package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// tokens are those that no text may show: the one in use, and a few from before, which a sidecar may still repeat.
type tokens struct {
	mu   sync.Mutex
	sent []string // the newest last
}

// tokensKept is more than change hands within one repair.
const tokensKept = 4

func (t *tokens) add(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.sent, token) {
		t.sent = append(t.sent, token)
		t.sent = t.sent[max(0, len(t.sent)-tokensKept):]
	}
}

// partShown is how much of a token may stand at the end of a text that was cut off there.
const partShown = 8

// hide takes the tokens out of a text, also as they are spelled in JSON, in a page and in a URL, and the beginning of one
// at its end.
func (t *tokens) hide(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, token := range t.sent {
		inJSON, _ := json.Marshal(token) // a string never fails
		quoted := strconv.Quote(token)
		for _, form := range []string{
			token, string(inJSON[1 : len(inJSON)-1]), quoted[1 : len(quoted)-1],
			html.EscapeString(token), url.QueryEscape(token), url.PathEscape(token),
		} {
			text = strings.ReplaceAll(text, form, "[token]")
			for n := len(form) - 1; n >= partShown; n-- {
				text = strings.TrimSuffix(text, form[:n])
			}
		}
	}
	return text
}

// clean is an error as people may see it. One of net/http can quote what the other side sent.
func (t *tokens) clean(err error) error {
	if err == nil {
		return nil
	}
	return &cleanError{text: clip(t.hide(err.Error())), original: err}
}

type cleanError struct {
	text     string
	original error
}

func (e *cleanError) Error() string { return e.text }

// Is lets a context's errors and those of the system be found, and keeps the original's text in.
func (e *cleanError) Is(target error) bool { return errors.Is(e.original, target) }

// token is what Options.Token gives, fit for a header.
func (c *Client) token(ctx context.Context) (string, error) {
	token, err := c.o.Token(ctx)
	token = strings.TrimSpace(token)
	switch {
	case err != nil:
		return "", err
	case token == "":
		return "", errors.New("it is empty")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("it has characters that no token has")
	}
	c.tokens.add(token)
	return token, nil
}
