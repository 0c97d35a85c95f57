package kit

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/internal/text"
)

// Answer is the result of one request.
type Answer struct {
	Status int // 0: there is no whole answer
	Header http.Header
	Body   []byte
	Again  time.Duration // how long the answer asks clients to wait
	Err    error         // why there is no whole answer
}

// Exchange sends the request once over way, which follows no redirect, and reads the whole answer
// within the limits.
func Exchange(way http.RoundTripper, req *http.Request, limits bounded.Limits) Answer {
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

// longest bounds the text about one call.
const longest = 900

// Told returns the error as a sentence about its node: with its cause, on one line, of bounded
// length and without the secrets. If err is not a Refusal, its concern is otherwise.
func Told(err error, otherwise Concern, secrets *redact.Keyring, format string) *Refusal {
	var e *Refusal
	if !errors.As(err, &e) {
		e = &Refusal{Why: otherwise, Text: "the call failed", Cause: secrets.Error(err)}
	}
	out := *e
	if out.Cause != nil {
		out.Text += " (" + out.Cause.Error() + ")"
	}
	out.Text = text.Line(secrets.Hide(fmt.Sprintf(format, out.Text)), longest)
	return &out
}
