// Package http asks an operator's own receiver to act on machines: it POSTs one JSON document for
// each action.
//
// The document has all that the Node shows about its machine, and only the receiver can compare
// that with its own machines. So the receiver's answer concerns that one machine, and never the
// account of all.
//
// net/http sends a request that has an Idempotency-Key a second time when a connection breaks,
// because it treats such a request as repeatable. So each request here has a connection of its own,
// and a body that cannot be read twice.
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

// maxDocument bounds the document that is sent. An alert on a Node has 16 labels of 256 bytes.
const maxDocument = 32 << 10

// answers bounds what is read of an answer: a few short texts.
var answers = bounded.Limits{Bytes: 64 << 10, Values: 1000, Depth: 16}

// Client calls the receiver. It is safe for concurrent use.
type Client struct {
	settings.HTTP
	kit.Reporter
	urls map[string]string // by action
	way  http.RoundTripper
}

// New checks that all files can be read. It makes no request. Redirects are never followed,
// whatever the configuration says.
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

// post sends the document once. The gate checks right before the request leaves; a question has no
// gate.
func (c *Client) post(ctx context.Context, d document, gate *kit.Gate) kit.Answer {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	d.Version = "1"
	body, err := json.Marshal(d)
	switch {
	case ctx.Err() != nil || err != nil:
		return kit.Answer{Err: cmp.Or(ctx.Err(), err)}
	case len(body) > maxDocument:
		return kit.Answer{Err: &kit.Refusal{Why: kit.Machine, Text: fmt.Sprintf("the document about the machine has %d bytes, and Drydock sends at most %d", len(body), maxDocument)}}
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

// own reports that the answer may be the receiver's: it is empty, one JSON object, or plain text.
// An HTML page is from a proxy.
func own(a kit.Answer) bool {
	body := bytes.TrimSpace(a.Body)
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	return a.Err == nil && (len(body) == 0 || kind == "text/plain" || object(a))
}

func object(a kit.Answer) bool {
	body := bytes.TrimSpace(a.Body)
	return len(body) > 0 && body[0] == '{' && json.Valid(body)
}
