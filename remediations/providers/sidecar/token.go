package sidecar

import (
	"context"
	"errors"
	"strings"

	"drydock.dev/drydock/internal/redact"
)

// newTokens holds the tokens that must be in no text, because a sidecar may repeat them.
func newTokens() *redact.Keyring { return &redact.Keyring{Mark: "[token]", Most: maxText} }

// token returns the result of Options.Token, checked for use in a header.
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
	c.tokens.Add(token)
	return token, nil
}
