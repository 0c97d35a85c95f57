package redfish

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stmcginnis/gofish/schemas"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/remediations/providers/kit"
)

const (
	// maxAnswer bounds one answer. A System of a large machine has some 50 kB.
	maxAnswer = 1 << 20
	// maxRequests bounds one call: a collection of systems may be long, or name itself as its next
	// page.
	maxRequests = 40
	dialTimeout = 5 * time.Second
)

// answers bounds the size of a decoded answer. A System of a large machine has some 2,000 values.
var answers = bounded.Limits{Bytes: maxAnswer, Values: 8000, Depth: 32}

// maxTogether bounds all answers of one call together: gofish keeps the text of each System that it
// reads.
const maxTogether = 4 << 20

// errStopped says that a request was not sent, because the previous one was refused.
var errStopped = errors.New("nothing more was asked after that")

// answer has the parts of an answer that are kept.
type answer struct {
	sent       string   // the request
	status     int      // 0: there is no whole answer
	own        bool     // its body has the form of a Redfish error
	messages   []string // of its error
	location   string
	page       bool  // its body is there and is not JSON
	state      bool  // its error names a message
	err        error // why there is no whole answer
	retryAfter time.Duration
}

// wire is the only transport that gofish uses. It is for one call.
type wire struct {
	base    *http.Transport
	host    string
	timeout time.Duration
	// together is how many bytes all answers had.
	together atomic.Int64

	mu       sync.Mutex
	requests int
	failed   *answer // the first one that failed, before the reset
	// top is the service root as it was read, or as the survey kept it.
	top  root
	kept []byte
	// gate is set when the reset may be sent. target is its address, match its If-Match, reset its
	// result.
	gate          *kit.Gate
	target, match string
	resets        int
	reset         answer
	closing       bool // the session is being ended; the answer does not count
}

func newWire(b *bmc, timeout time.Duration) *wire {
	base := kit.Transport(min(dialTimeout, timeout))
	base.TLSHandshakeTimeout, base.TLSClientConfig, base.MaxIdleConnsPerHost = timeout, b.tls(), 1
	return &wire{host: b.url.Host, timeout: timeout, base: base}
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.kept != nil && req.Method == http.MethodGet && req.URL.Path == schemas.DefaultServiceRoot && req.URL.Host == w.host {
		return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(w.kept)), Request: req}, nil
	}
	isReset, err := w.admit(req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), w.timeout)
	defer cancel()
	out := req.Clone(ctx)
	out.Header.Del("If-Match") // some BMCs refuse it
	if isReset && w.match != "" {
		out.Header.Set("If-Match", w.match)
	}
	out.Header.Set("User-Agent", "drydock")
	var gate *kit.Gate
	if isReset {
		gate = w.gate
	}
	whole := kit.Exchange(w.base, out, answers, gate)
	got := answer{sent: req.Method + " " + req.URL.Path, err: cmp.Or(whole.Err, w.tooMuch(whole.Body))}
	resp := &http.Response{StatusCode: whole.Status, Header: whole.Header, Body: io.NopCloser(bytes.NewReader(whole.Body)), Request: req}
	if got.err == nil {
		got.status, got.retryAfter, got.location = whole.Status, whole.Again, whole.Header.Get("Location")
		got.judge(whole.Body)
		w.learn(req, resp, whole.Body)
	}
	w.note(got, isReset)
	if got.err != nil {
		return nil, got.err
	}
	return resp, nil
}

// admit reports whether a request may be sent, and whether it is the reset.
func (w *wire) admit(req *http.Request) (isReset bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	isReset = w.gate != nil && req.Method == http.MethodPost && !w.closing
	switch {
	case req.URL.Scheme != "https" || req.URL.Host != w.host || req.URL.User != nil:
		err = errOurs("the BMC names a place on another host, which is not followed")
	case w.failed != nil && !w.closing:
		err = errStopped
	case w.requests >= maxRequests:
		err = errTooMany
	case isReset && w.resets > 0:
		err = errors.New("the reset is sent once only")
	case isReset && req.URL.EscapedPath() != w.target:
		err = errOurs("the reset would go to another place than its target")
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

// tooMuch returns why an answer is not used; nil: it is.
func (w *wire) tooMuch(body []byte) error {
	if w.together.Add(int64(len(body))) > maxTogether {
		return errTogether
	}
	// gofish starts to read all members of a collection at once, whether the requests are allowed
	// or not.
	var list struct{ Members []json.RawMessage }
	if json.Unmarshal(body, &list) == nil && len(list.Members) > maxRequests {
		return errTooMany
	}
	return nil
}

var errTogether = errOurs(fmt.Sprintf("the answers of one call are longer than %d bytes together", maxTogether))

var errTooMany = errOurs(fmt.Sprintf("the BMC has more to list than %d requests", maxRequests))

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

// judge finds out what the body of an answer is.
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
		a.messages = []string{said.Error.Code}
		for _, m := range said.Error.Extended {
			a.messages = append(a.messages, m.MessageID)
		}
	}
}

// learn keeps the service root, and finds the address of a new session if the BMC names it only in
// the body.
func (w *wire) learn(req *http.Request, resp *http.Response, body []byte) {
	switch {
	case resp.StatusCode/100 != 2:
	case req.Method == http.MethodGet && req.URL.Path == schemas.DefaultServiceRoot:
		w.mu.Lock()
		defer w.mu.Unlock()
		_ = json.Unmarshal(body, &w.top) // gofish reads it, too, and fails if it cannot be read
	case req.Method == http.MethodPost && resp.Header.Get("X-Auth-Token") != "" && resp.Header.Get("Location") == "":
		var session odata
		if json.Unmarshal(body, &session) == nil && session.ID != "" {
			resp.Header.Set("Location", session.ID)
		}
	}
}

func (w *wire) root() root {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.top
}

// keeps answers the request for the service root with what the survey kept of it.
func (w *wire) keeps(b before) {
	w.kept, _ = json.Marshal(map[string]any{"@odata.id": schemas.DefaultServiceRoot, "Links": map[string]any{"Sessions": odata{b.Sessions}}}) // strings never fail
}

// goOn allows requests for other Systems after one that failed, unless the answer concerns all of
// them.
func (w *wire) goOn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		return true
	}
	if slices.Contains([]int{http.StatusUnauthorized, http.StatusTooManyRequests}, w.failed.status) || errors.Is(w.failed.err, errTooMany) || errors.Is(w.failed.err, errTogether) {
		return false
	}
	w.failed = nil
	return true
}

// CloseIdleConnections is what http.Client looks for.
func (w *wire) CloseIdleConnections() { w.base.CloseIdleConnections() }

// arm makes the next POST the reset. The gate decides whether it leaves, and only to the target.
func (w *wire) arm(g *kit.Gate, target, match string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate, w.target, w.match = g, target, match
}

// end allows the request that closes the session, even if an earlier request failed.
func (w *wire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closing = true
}

// failure returns the answer to the first request that failed before the reset. False: none failed.
func (w *wire) failure() (answer, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		return answer{}, false
	}
	return *w.failed, true
}

// outcome returns the answer to the reset. False: the reset was not tried.
func (w *wire) outcome() (answer, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reset, w.resets > 0
}
