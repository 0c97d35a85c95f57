package kit

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/redact"
)

// Answer is the result of one request.
type Answer struct {
	Status int // HTTP status; 0 if no complete answer was received
	Header http.Header
	Body   []byte
	Again  time.Duration // how long the server asks clients to wait, from Retry-After
	Err    error         // why no complete answer was received
	// Left reports that the request passed its gate. The server may have carried it out.
	Left bool
}

// Exchange sends the request once through way and reads the complete answer within the limits. It
// follows no redirect. A request that changes something needs a gate, which decides right before
// sending. A nil gate is for requests that change nothing. If the gate refuses the request, Err
// says why.
func Exchange(way http.RoundTripper, req *http.Request, limits bounded.Limits, gate *Gate) Answer {
	if gate == nil {
		return exchange(way, req, limits)
	}
	previewRequest(req.Context(), req)
	a := exchange(way, req.WithContext(gate.Trace(req.Context())), limits)
	a.Left = !gate.Withdraw()
	if no := gate.Forbidden(); no != nil {
		a.Err = &Refusal{Why: Passing, Text: "the request was not sent", Cause: no}
	}
	return a
}

// Transport returns an HTTP transport that uses no proxy. It speaks only HTTP/1.1: a connection
// carries one request at a time, so a gate can close the connection of its request alone. The
// connection and the TLS handshake may each take as long as within.
func Transport(within time.Duration) *http.Transport {
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	dial := (&net.Dialer{Timeout: within}).DialContext
	return &http.Transport{DialContext: dial, TLSHandshakeTimeout: within, MaxResponseHeaderBytes: 64 << 10, Protocols: http1}
}

func exchange(way http.RoundTripper, req *http.Request, limits bounded.Limits) Answer {
	resp, err := way.RoundTrip(req)
	if refused := redact.TokenRefused(err); refused != nil {
		return Answer{Err: refused} // the token endpoint's error text may repeat the client's secret
	}
	if err != nil {
		return Answer{Err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := limits.ReadAll(req.Context(), resp.Body)
	if err != nil {
		return Answer{Err: fmt.Errorf("reading the answer: %w", err)}
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: body, Again: RetryAfter(resp.Header)}
}
