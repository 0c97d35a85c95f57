package redfish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/lastlook"
	"drydock.dev/drydock/remediations"
)

const (
	// maxAnswer bounds one answer. A System of a large machine has some 50 kB.
	maxAnswer = 1 << 20
	// maxRequests bounds one call: a collection of systems may be long, or name itself as its next page.
	maxRequests = 40
	dialTimeout = 5 * time.Second
)

// answers bound what an answer may become. A System of a large machine has some 2,000 values.
var answers = bounded.Limits{Bytes: maxAnswer, Values: 8000, Depth: 32}

// maxTogether bounds all answers of one call: gofish keeps the text of each System that it reads.
const maxTogether = 4 << 20

// errStopped says that a request was not sent, because the one before was refused.
var errStopped = errors.New("nothing more was asked after that")

// answer is what is kept of an answer.
type answer struct {
	sent       string // what was asked
	status     int    // 0: there is no whole answer
	own        bool   // its body has the form of a Redfish error
	page       bool   // its body is there and is no JSON
	state      bool   // its error names a message
	err        error  // why there is no whole answer
	retryAfter time.Duration
}

// wire is gofish's only way out. It is for one call.
type wire struct {
	base    *http.Transport
	host    string
	timeout time.Duration
	// together is how many bytes all answers had.
	together atomic.Int64

	mu       sync.Mutex
	requests int
	failed   *answer // the first one that failed, before the reset
	// gate is set when the reset may be sent, below is where its target must be, reset what came of it.
	gate    *lastlook.Gate
	below   string
	resets  int
	reset   answer
	closing bool // the session is being ended, whose answer does not count
}

func newWire(b *bmc, timeout time.Duration) *wire {
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	return &wire{host: b.url.Host, timeout: timeout, base: &http.Transport{
		DialContext: (&net.Dialer{Timeout: min(dialTimeout, timeout)}).DialContext, TLSHandshakeTimeout: timeout, TLSClientConfig: b.tls(),
		MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: 1, Protocols: http1,
	}}
}

// RoundTrip is http.RoundTripper's.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	isReset, err := w.admit(req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), w.timeout)
	defer cancel()
	if isReset {
		ctx = w.gate.Trace(ctx)
	}
	out := req.Clone(ctx)
	out.Header.Del("If-Match") // some BMCs refuse it, and gofish would then send the reset again
	out.Header.Set("User-Agent", "drydock")
	got := answer{sent: req.Method + " " + req.URL.Path}
	resp, body, err := w.exchange(out)
	if err != nil {
		got.err = err
	} else {
		got.status, got.retryAfter = resp.StatusCode, retryAfter(resp.Header)
		got.judge(body)
	}
	w.note(got, isReset)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// admit says whether a request may be sent, and whether it is the reset.
func (w *wire) admit(req *http.Request) (isReset bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	isReset = w.gate != nil && req.Method == http.MethodPost && !w.closing
	switch {
	case req.URL.Scheme != "https" || req.URL.Host != w.host || req.URL.User != nil:
		err = errors.New("the BMC names a place on another host, which is not followed")
	case w.failed != nil && !w.closing:
		err = errStopped
	case w.requests >= maxRequests:
		err = errTooMany
	case isReset && w.resets > 0:
		err = errors.New("the reset is sent once only")
	case isReset && (path.Clean(req.URL.Path) != req.URL.Path || !strings.HasPrefix(req.URL.Path, w.below)):
		err = fmt.Errorf("the reset's target %.100q is not below the system %.100q", req.URL.Path, w.below)
	}
	if err != nil {
		if w.failed == nil {
			w.failed = &answer{sent: req.Method + " " + req.URL.Path, err: err}
		}
		return isReset, err
	}
	w.requests++
	if isReset {
		w.resets++
	}
	return isReset, nil
}

// exchange sends a request and reads its whole answer.
func (w *wire) exchange(req *http.Request) (*http.Response, []byte, error) {
	resp, err := w.base.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := answers.ReadAll(req.Context(), resp.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the answer: %w", err)
	}
	if w.together.Add(int64(len(body))) > maxTogether {
		return nil, nil, fmt.Errorf("the answers of one call are longer than %d bytes together", maxTogether)
	}
	// gofish begins with all members of a collection at once, whether they may be asked or not.
	var list struct{ Members []json.RawMessage }
	if json.Unmarshal(body, &list) == nil && len(list.Members) > maxRequests {
		return nil, nil, errTooMany
	}
	return resp, body, nil
}

var errTooMany = fmt.Errorf("the BMC has more to list than %d requests", maxRequests)

func (w *wire) note(got answer, isReset bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case isReset:
		w.reset = got
	case w.failed == nil && !w.closing && (got.err != nil || got.status/100 != 2 || got.page):
		w.failed = &got
	}
}

// judge says what the body of an answer is.
func (a *answer) judge(body []byte) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return
	}
	var said struct {
		Error *struct {
			Code     string
			Extended []struct{ MessageID string } `json:"@Message.ExtendedInfo"`
		} `json:"error"`
	}
	a.page = !json.Valid(body)
	if json.Unmarshal(body, &said) == nil && said.Error != nil {
		a.own = true
		a.state = said.Error.Code != "" || len(said.Error.Extended) > 0
	}
}

// retryAfter is how long an answer asks to be left alone. A date goes by the BMC's clock, which is often wrong, so it says nothing.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return 0
	}
	return min(time.Duration(min(seconds, 1<<20))*time.Second, remediations.AskMended)
}

// CloseIdleConnections is what http.Client looks for.
func (w *wire) CloseIdleConnections() { w.base.CloseIdleConnections() }

// arm makes the next POST the reset. It goes out where the gate lets it, to a target below the system.
func (w *wire) arm(g *lastlook.Gate, system string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate, w.below = g, strings.TrimRight(system, "/")+"/Actions/"
}

// end lets the session be closed, whatever was refused before.
func (w *wire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closing = true
}

// failure is the first request that failed before the reset.
func (w *wire) failure() (answer, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		return answer{}, false
	}
	return *w.failed, true
}

// outcome is what came of the reset, and whether it was tried.
func (w *wire) outcome() (answer, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reset, w.resets > 0
}
