// Package http repairs machines through an HTTP server of the cluster's operator, called the
// receiver. For each action, Drydock sends one POST with a JSON document, and the receiver acts on
// the machine.
//
// The document has all data that the Node shows about its machine. Only the receiver can compare
// the data with its machines. So if the receiver rejects a document, this concerns only that
// machine.
//
// If a connection breaks, net/http repeats a request that has an Idempotency-Key. Drydock must not
// send a request twice. So each request has a new connection, and a body that net/http cannot read
// again.
package http

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"time"

	promconfig "github.com/prometheus/common/config"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/promhttp"
	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/internal/webhooks"
	"drydock.dev/drydock/remediations/providers/http/settings"
	"drydock.dev/drydock/remediations/providers/kit"
)

// maxDocument is in bytes. An alert on a Node has up to 16 labels of 256 bytes.
const maxDocument = 32 << 10

var answers = bounded.Limits{Bytes: 64 << 10, Values: 1000, Depth: 16}

// Client calls the receiver. It is safe for concurrent use.
type Client struct {
	settings.HTTP
	kit.Reporter
	urls map[string]string // URL by action
	way  http.RoundTripper
}

// New checks that all configured files can be read. It sends no request, and the Client never
// follows redirects, even if the configuration allows them.
func New(o settings.HTTP) (*Client, error) {
	c := &Client{HTTP: o, Reporter: kit.Reporter{Secrets: &redact.Keyring{Mark: "[secret]"}, Otherwise: kit.Unreached}, urls: o.URLs()}
	_, err := webhooks.ReadKey(c.SigningKeyFile)
	if err == nil {
		dial := (&net.Dialer{Timeout: c.Timeout}).DialContext
		c.way, err = promhttp.New(c.HTTPConfig, "http", c.Timeout, dial, promconfig.WithKeepAlivesDisabled(), promconfig.WithHTTP2Disabled())
	}
	if err != nil {
		return nil, fmt.Errorf("configuring providers.http: %w", err)
	}
	return c, nil
}

// post sends the document once. gate decides right before sending whether it may be sent, and is
// nil for observe, which changes nothing.
func (c *Client) post(ctx context.Context, d document, gate *kit.Gate) kit.Answer {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	d.Version = "1"
	body, err := json.Marshal(d)
	switch {
	case ctx.Err() != nil || err != nil:
		return kit.Answer{Err: cmp.Or(ctx.Err(), err)}
	case len(body) > maxDocument:
		return kit.Answer{Err: &kit.Refusal{Why: kit.Machine, Text: fmt.Sprintf("the document about the machine has %d bytes, but Drydock sends at most %d", len(body), maxDocument)}}
	}
	key, err := webhooks.ReadKey(c.SigningKeyFile)
	if err != nil {
		return kit.Answer{Err: &kit.Refusal{Why: kit.Setup, Text: err.Error()}}
	}
	c.Secrets.Add(string(key))
	req, err := http.NewRequestWithContext(c.Secrets.Trace(ctx), http.MethodPost, c.urls[d.Action], io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		return kit.Answer{Err: err}
	}
	req.ContentLength = int64(len(body))
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	id := "observe-" + rand.Text()
	if gate != nil {
		id = d.Attempt
		req.Header.Set("Idempotency-Key", id)
	}
	webhooks.Sign(req.Header, id, time.Now(), body, key)
	return kit.Exchange(c.way, req, answers, gate)
}

// An HTML page is from a proxy, and not from the receiver.
func own(a kit.Answer) bool {
	body := bytes.TrimSpace(a.Body)
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	return a.Err == nil && (len(body) == 0 || kind == "text/plain" || object(a))
}

func object(a kit.Answer) bool {
	body := bytes.TrimSpace(a.Body)
	return len(body) > 0 && body[0] == '{' && json.Valid(body)
}
