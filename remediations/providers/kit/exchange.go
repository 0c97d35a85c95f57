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
	// Left is true if the gate let the request pass, so the server may have carried it out.
	Left bool
}

// Exchange sends the request once, and reads the complete answer within the limits. It follows no
// redirect. gate decides right before sending, and is nil for a request that changes nothing.
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

// Transport returns an HTTP transport without a proxy. It uses only HTTP/1.1, so that a gate can
// close the connection without an effect on other requests. within limits the connection, and
// separately the TLS handshake.
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
