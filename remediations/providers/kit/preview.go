package kit

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
)

type previewKey struct{}

// Previewing lets a call show its requests to a person before its last check. The texts for show
// have no headers and no URL query, because these may contain secrets.
func Previewing(ctx context.Context, show func(what string)) context.Context {
	return context.WithValue(ctx, previewKey{}, show)
}

// Preview shows the description of a request if the context is from Previewing.
func Preview(ctx context.Context, what string) {
	if show, ok := ctx.Value(previewKey{}).(func(string)); ok {
		show(what)
	}
}

// The body can still be sent after previewRequest.
func previewRequest(ctx context.Context, req *http.Request) {
	if ctx.Value(previewKey{}) == nil {
		return
	}
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(req.Body, 64<<10)); err != nil {
			body = []byte("(the request's body cannot be read)")
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	at := url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path}
	Preview(ctx, strings.TrimSpace(req.Method+" "+at.String()+" "+string(body)))
}
