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

// Previewing returns a context that makes a call pass what it would send to show, before the gate
// decides about it. Headers and the URL's query are left out, because they may have secrets.
func Previewing(ctx context.Context, show func(what string)) context.Context {
	return context.WithValue(ctx, previewKey{}, show)
}

// Preview shows what is about to be sent. Without Previewing it does nothing.
func Preview(ctx context.Context, what string) {
	if show, ok := ctx.Value(previewKey{}).(func(string)); ok {
		show(what)
	}
}

// PreviewRequest shows which request is about to be sent.
func PreviewRequest(ctx context.Context, req *http.Request) {
	if ctx.Value(previewKey{}) == nil {
		return
	}
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(req.Body, 64<<10)); err != nil {
			body = []byte("a body that cannot be read")
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	at := url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path}
	Preview(ctx, strings.TrimSpace(req.Method+" "+at.String()+" "+string(body)))
}
