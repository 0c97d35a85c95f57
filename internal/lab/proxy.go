package lab

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verdict decides what a Proxy does with a request or an answer.
type Verdict int

const (
	Pass Verdict = iota
	// Unavailable answers with 503, which clients treat as a temporary fault.
	Unavailable
	// Forbidden answers with 403, which clients do not retry.
	Forbidden
	// TooManyRequests answers with 429 and a Retry-After of one second, which clients obey by
	// themselves.
	TooManyRequests
	InternalError
	// Reset closes the connection (or the HTTP/2 stream) without an answer.
	Reset
)

// Proxy stands between a client and an API server, and breaks the requests that its hooks choose.
// It forwards a client's token, but cannot forward a client certificate.
type Proxy struct {
	server *http.Server
	url    string
	before atomic.Pointer[func(*http.Request) Verdict]
	after  atomic.Pointer[func(*http.Response) Verdict]
}

// NewProxy starts a proxy on a free loopback port. upstream is the API server's URL, toUpstream the
// TLS configuration for it, and serving the proxy's own. The proxy always uses TLS, because
// client-go sends no token over plain HTTP.
func NewProxy(upstream string, toUpstream, serving *tls.Config) (*Proxy, error) {
	target, err := url.Parse(upstream)
	if err != nil {
		return nil, fmt.Errorf("parsing the proxy's upstream %q: %w", upstream, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback does not block
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	p := &Proxy{url: "https://" + listener.Addr().String()}
	quiet := log.New(io.Discard, "", 0) // the proxy's own log would only show the requests that it breaks on purpose
	reverse := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     &http.Transport{TLSClientConfig: toUpstream, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 100},
		FlushInterval: -1, // flush at once, otherwise events of a watch arrive late
		ErrorLog:      quiet,
		ModifyResponse: func(res *http.Response) error {
			if hook := p.after.Load(); hook != nil && *hook != nil { //nolint:bodyclose // the reverse proxy closes it
				if v := (*hook)(res); v != Pass {
					return broken(v)
				}
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			v := Reset // the upstream cannot be reached, so the client's connection is closed
			if b := broken(0); errors.As(err, &b) {
				v = Verdict(b)
			}
			refuse(w, v)
		},
	}
	p.server = &http.Server{
		TLSConfig: serving.Clone(),
		ErrorLog:  quiet,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if hook := p.before.Load(); hook != nil && *hook != nil {
				if v := (*hook)(r); v != Pass {
					refuse(w, v)
					return
				}
			}
			reverse.ServeHTTP(w, r)
		}),
	}
	go p.server.ServeTLS(listener, "", "") //nolint:errcheck // it always ends with ErrServerClosed, by Close
	return p, nil
}

// Before sets the hook that sees each request before the API server does. Nil removes it. A hook
// that reads the body must restore it.
func (p *Proxy) Before(hook func(*http.Request) Verdict) { p.before.Store(&hook) }

// After sets the hook that sees each answer before the client does. The request has already taken
// effect, so a test can kill a process between its write and the answer. Nil removes it.
func (p *Proxy) After(hook func(*http.Response) Verdict) { p.after.Store(&hook) }

// URL returns the proxy's URL.
func (p *Proxy) URL() string { return p.url }

// Close ends the proxy and all of its connections.
func (p *Proxy) Close() { _ = p.server.Close() }

// This error passes a hook's verdict through the reverse proxy.
type broken Verdict

func (b broken) Error() string { return fmt.Sprintf("broken by the lab (%d)", int(b)) }

// Clients read the body, so it has the format of an API server.
func refuse(w http.ResponseWriter, v Verdict) {
	code, reason := http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	switch v {
	case Forbidden:
		code, reason = http.StatusForbidden, metav1.StatusReasonForbidden
	case TooManyRequests:
		code, reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
		w.Header().Set("Retry-After", "1")
	case InternalError:
		code, reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
	case Reset, Pass:
		panic(http.ErrAbortHandler)
	case Unavailable:
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Code:     int32(code),
		Reason:   reason,
		Message:  "broken by the lab",
	})
}

// NewProxy starts a proxy to this lab's API server. It ends with the lab. Pass its URL to
// ServiceAccountKubeconfig.
func (l *Lab) NewProxy() (*Proxy, error) {
	cert, err := l.serving.tls()
	if err != nil {
		return nil, fmt.Errorf("reading the proxy's certificate: %w", err)
	}
	p, err := NewProxy(l.APIServerURL(), &tls.Config{RootCAs: l.ca.pool()}, &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proxies = append(l.proxies, p)
	return p, nil
}
