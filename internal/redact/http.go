package redact

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/oauth2"
)

var public = []string{"Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Host", "Idempotency-Key", "Traceparent", "Transfer-Encoding", "User-Agent",
	"Webhook-Id", "Webhook-Signature", "Webhook-Timestamp", ":authority", ":method", ":path", ":scheme"}

// Trace returns a context that adds the secrets in the headers of each request to the Keyring. It
// sees the headers when they are written, wherever they come from, for example from a library that
// fetches a token.
func (k *Keyring) Trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(name string, values []string) {
		for _, v := range values {
			k.Header(name, v)
		}
	}})
}

// Header adds the secret in one header.
func (k *Keyring) Header(name, value string) {
	name = textproto.CanonicalMIMEHeaderKey(name)
	if slices.Contains(public, name) {
		return
	}
	if name == "Authorization" || name == "Proxy-Authorization" {
		scheme, rest, two := strings.Cut(value, " ")
		if two {
			value = rest
		}
		if plain, err := base64.StdEncoding.DecodeString(value); err == nil && strings.EqualFold(scheme, "Basic") {
			user, password, _ := strings.Cut(string(plain), ":")
			k.AddPassword(user, password)
			return
		}
	}
	k.Add(value)
}

// refusals are the error codes of a token endpoint in RFC 6749.
var refusals = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope"}

// TokenRefused returns a safe error if an OAuth 2 token endpoint refused the request, or nil. It
// does not quote the endpoint's text, which may repeat the refused secret.
func TokenRefused(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) || refused.Response == nil {
		return nil
	}
	said := ""
	if slices.Contains(refusals, refused.ErrorCode) {
		said = ", " + refused.ErrorCode
	}
	code := refused.Response.StatusCode
	return fmt.Errorf("the OAuth 2 token endpoint answered %d %s%s; check client_id, the client's secret and token_url", code, http.StatusText(code), said)
}
