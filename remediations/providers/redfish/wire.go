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
	// maxAnswer is in bytes. A System of a large machine has about 50 kB.
	maxAnswer = 1 << 20
	// maxRequests is for one call. A collection of Systems may be long, or name itself as its next
	// page.
	maxRequests = 40
	dialTimeout = 5 * time.Second
)

// A System of a large machine has about 2,000 JSON values.
var answers = bounded.Limits{Bytes: maxAnswer, Values: 8000, Depth: 32}

// maxTogether is for all answers of one call, in bytes, because gofish keeps the text of each
// System.
const maxTogether = 4 << 20

var errStopped = errors.New("no further request is sent after a failed one")

type answer struct {
	sent       string   // method and path of the request
	status     int      // 0 if there is no complete answer
	own        bool     // the body has the form of a Redfish error
	messages   []string // message IDs of the error
	location   string
	page       bool  // the body is not empty and not JSON
	state      bool  // the error has a message ID
	err        error // why there is no complete answer
	retryAfter time.Duration
}

type wire struct {
	base    *http.Transport
	host    string
	timeout time.Duration
	// together is the size of all answers to this call, in bytes.
	together atomic.Int64

	mu       sync.Mutex
	requests int
	failed   *answer // the first request that failed, before the reset
	// top is the Redfish service root. kept is the one that the survey recorded, as JSON, or nil.
	top  root
	kept []byte
	// gate is nil until the reset may be sent. match is the value of the reset's If-Match header,
	// if it has one.
	gate          *kit.Gate
	target, match string
	resets        int
	reset         answer
	closing       bool // the session is being closed, and the answer to that does not count
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
	out.Header.Del("If-Match") // some BMCs refuse this header
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

func (w *wire) admit(req *http.Request) (isReset bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	isReset = w.gate != nil && req.Method == http.MethodPost && !w.closing
	switch {
	case req.URL.Scheme != "https" || req.URL.Host != w.host || req.URL.User != nil:
		err = errOurs("the BMC's link leads to another host, where Drydock sends nothing")
	case w.failed != nil && !w.closing:
		err = errStopped
	case w.requests >= maxRequests:
		err = errTooMany
	case isReset && w.resets > 0:
		err = errors.New("the reset was already sent, and is sent only once")
	case isReset && req.URL.EscapedPath() != w.target:
		err = errOurs("the path of the reset is not its target")
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

// tooMuch also rejects a list of more than maxRequests members.
func (w *wire) tooMuch(body []byte) error {
	if w.together.Add(int64(len(body))) > maxTogether {
		return errTogether
	}
	// gofish requests all members of a collection, even after a request was refused.
	var list struct{ Members []json.RawMessage }
	if json.Unmarshal(body, &list) == nil && len(list.Members) > maxRequests {
		return errTooMany
	}
	return nil
}

var errTogether = errOurs(fmt.Sprintf("the BMC's answers to one call have more than %d bytes together", maxTogether))

var errTooMany = errOurs(fmt.Sprintf("reading the BMC takes more than %d requests", maxRequests))

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

// If the BMC names a new session's path only in the body, learn copies it into the header Location.
func (w *wire) learn(req *http.Request, resp *http.Response, body []byte) {
	switch {
	case resp.StatusCode/100 != 2:
	case req.Method == http.MethodGet && req.URL.Path == schemas.DefaultServiceRoot:
		w.mu.Lock()
		defer w.mu.Unlock()
		_ = json.Unmarshal(body, &w.top) // gofish reads it, too, and reports an error
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

// The wire answers the request for the service root with the survey's data, and sends no request.
func (w *wire) keeps(b before) {
	w.kept, _ = json.Marshal(map[string]any{"@odata.id": schemas.DefaultServiceRoot, "Links": map[string]any{"Sessions": odata{b.Sessions}}}) // never fails
}

// goOn forgets the failure and returns true, unless the failure would be the same for all Systems,
// for example HTTP 401.
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

// CloseIdleConnections closes idle connections, for http.Client.
func (w *wire) CloseIdleConnections() { w.base.CloseIdleConnections() }

// arm marks the next POST as the reset. It is sent only to target, and only after the last check of
// the gate.
func (w *wire) arm(g *kit.Gate, target, match string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate, w.target, w.match = g, target, match
}

// end allows the request that closes the session, even if an earlier request has failed.
func (w *wire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closing = true
}

func (w *wire) failure() (answer, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		return answer{}, false
	}
	return *w.failed, true
}

func (w *wire) outcome() (answer, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reset, w.resets > 0
}
