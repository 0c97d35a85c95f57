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
	Status int // 0: there is no whole answer
	Header http.Header
	Body   []byte
	Again  time.Duration // how long the answer asks clients to wait
	Err    error         // why there is no whole answer
	// Left: the request has passed its gate, and may have been carried out.
	Left bool
}

// Exchange sends the request once over way, which follows no redirect, and reads the whole answer
// within the limits. The gate decides whether a request that changes something leaves; nil: it
// changes nothing. If the gate is shut, Err says why.
func Exchange(way http.RoundTripper, req *http.Request, limits bounded.Limits, gate *Gate) Answer {
	if gate == nil {
		return exchange(way, req, limits)
	}
	PreviewRequest(req.Context(), req)
	a := exchange(way, req.WithContext(gate.Trace(req.Context())), limits)
	a.Left = !gate.Withdraw()
	if no := gate.Forbidden(); no != nil {
		a.Err = &Refusal{Why: Passing, Text: "the request was not sent", Cause: no}
	}
	return a
}

// Transport returns a transport without a proxy. It speaks HTTP/1.1, so that a gate can close the
// connection of its request alone. within bounds the connection and, again, its TLS handshake.
func Transport(within time.Duration) *http.Transport {
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	dial := (&net.Dialer{Timeout: within}).DialContext
	return &http.Transport{DialContext: dial, TLSHandshakeTimeout: within, MaxResponseHeaderBytes: 64 << 10, Protocols: http1}
}

func exchange(way http.RoundTripper, req *http.Request, limits bounded.Limits) Answer {
	resp, err := way.RoundTrip(req)
	if refused := redact.TokenRefused(err); refused != nil {
		return Answer{Err: refused} // the endpoint's own text may repeat the client's secret
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
