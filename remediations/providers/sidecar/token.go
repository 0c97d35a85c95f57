package sidecar

import (
	"context"
	"errors"
	"strings"

	"drydock.dev/drydock/internal/redact"
)

// A sidecar may repeat a token in its answer.
func newTokens() *redact.Keyring { return &redact.Keyring{Mark: "[token]", Most: maxText} }

// token returns an error if the token cannot be sent in a header.
func (c *Client) token(ctx context.Context) (string, error) {
	token, err := c.o.Token(ctx)
	token = strings.TrimSpace(token)
	switch {
	case err != nil:
		return "", err
	case token == "":
		return "", errors.New("the token is empty")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("the token has invalid characters")
	}
	c.tokens.Add(token)
	return token, nil
}
