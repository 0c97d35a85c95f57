package providertest

import (
	"fmt"
	"html"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"
)

// The bytes of an endless answer. A provider that reads without a limit then fails the test, and
// does not fill the memory.
const endless = 64 << 20

// An answer of the backend that was not sent yet.
type recorded struct{ *httptest.ResponseRecorder }

func record(handler http.Handler, r *http.Request) *recorded {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return &recorded{w}
}

func (r *recorded) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.Header())
	w.WriteHeader(r.Code)
	_, _ = w.Write(r.Body.Bytes())
}

// done is the backend's good answer, or nil if it has not done the work.
func (h *HTTP) misanswer(w http.ResponseWriter, r *http.Request, sent string, f Fault, done *recorded) {
	text := f.Text + " You sent " + fmt.Sprint(r.Header) + " " + sent
	switch f.Kind {
	case Slow:
		select {
		case <-time.After(Slowly):
		case <-h.closed.Done():
		}
		done.send(w)
		return
	case Cut, Gone:
	case Hang:
		select {
		case <-r.Context().Done():
		case <-h.closed.Done():
		}
	case Half:
		half(w, done)
	case Garbage:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"message": "`+strings.ReplaceAll(text, `"`, `\"`))
		return
	case Endless:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"message": "`)
		h.flood(w, strings.Repeat("x", 64<<10))
	case EndlessHeader:
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			h.flood(conn, strings.Repeat("X-Header: "+strings.Repeat("x", 1<<10)+"\r\n", 64))
		}
		return
	case Trickle:
		h.trickle(w, r)
	case Page:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, "<html><body><h1>Sorry</h1><pre>"+html.EscapeString(text)+"</pre></body></html>")
		return
	case Redirect, RedirectHere:
		to := "http://" + h.thief.Addr().String() + r.URL.Path
		if f.Kind == RedirectHere {
			to = r.URL.RequestURI()
		}
		http.Redirect(w, r, to, f.Status)
		return
	case Answer:
		h.answer(w, f.Status, text)
		return
	}
	panic(http.ErrAbortHandler)
}

func (h *HTTP) answer(w http.ResponseWriter, status int, text string) {
	contentType, body := h.o.Error(status, text)
	if contentType == "" {
		contentType = "application/json"
	}
	w.Header().Set("Content-Type", contentType)
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// If the answer has no body, half sends a header that announces one.
func half(w http.ResponseWriter, done *recorded) {
	body := done.Body.Bytes()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+2))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
}

// flood ends when the reader stops or the limit endless is reached.
func (h *HTTP) flood(w io.Writer, chunk string) {
	for written := 0; written < endless; written += len(chunk) {
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
	}
	h.overread.Store(true)
}

func (h *HTTP) trickle(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := io.WriteString(w, " "); err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-h.closed.Done():
			return
		}
	}
}

// quiet is for a server whose connections are cut on purpose.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
