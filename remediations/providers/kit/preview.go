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

// Previewing returns a context for a call that must show its requests to a person before it sends
// them. Right before its last check, the call passes a description of each request to the function
// show. The description has no headers and no URL query, because these may contain secrets.
func Previewing(ctx context.Context, show func(what string)) context.Context {
	return context.WithValue(ctx, previewKey{}, show)
}

// Preview passes the description of a request to the function show, if the context is from
// Previewing. Otherwise it does nothing.
func Preview(ctx context.Context, what string) {
	if show, ok := ctx.Value(previewKey{}).(func(string)); ok {
		show(what)
	}
}

// previewRequest calls Preview with the method, the URL and the body of an HTTP request. The body
// can still be sent afterwards.
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
