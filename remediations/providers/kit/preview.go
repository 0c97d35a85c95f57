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

// Previewing returns a context for a call whose requests are shown to a person. Right before its
// gate decides, the call passes a description of each request to show. The description has no
// headers and no query of the URL, because these may contain secrets.
func Previewing(ctx context.Context, show func(what string)) context.Context {
	return context.WithValue(ctx, previewKey{}, show)
}

// Preview passes the description of a request to the function of Previewing. Without Previewing it
// does nothing.
func Preview(ctx context.Context, what string) {
	if show, ok := ctx.Value(previewKey{}).(func(string)); ok {
		show(what)
	}
}

// previewRequest passes the description of an HTTP request, with method, URL and body, to Preview.
// The body can still be read afterwards.
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
