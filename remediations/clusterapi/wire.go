package clusterapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lastlook"
	"drydock.dev/drydock/remediations"
)

const (
	// maxAnswer bounds one answer. A Machine has some 6 kB.
	maxAnswer = 8 << 20
	// perPage and maxPages bound what is listed: 10,000 objects.
	perPage  = 250
	maxPages = 40
)

// transport is the only way out. It speaks HTTP/1.1, over connections that no other client has, so that a request that may not leave
// can have its connection closed.
func (c *Client) transport() (http.RoundTripper, error) {
	tls, err := rest.TLSConfigFor(c.o.API)
	if err != nil {
		return nil, err
	}
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	base := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: c.o.Timeout}).DialContext, TLSClientConfig: tls, TLSHandshakeTimeout: c.o.Timeout,
		MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, Protocols: http1,
	}
	if c.o.API.Proxy != nil {
		base.Proxy = c.o.API.Proxy
	}
	return rest.HTTPWrappersForConfig(c.o.API, hearing{base, c})
}

// hearing learns what proves who Drydock is, so that no text shows it.
type hearing struct {
	*http.Transport
	client *Client
}

func (h hearing) RoundTrip(r *http.Request) (*http.Response, error) {
	_, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	h.client.secrets.Add(secret)
	return h.Transport.RoundTrip(r)
}

// request is one to Cluster API's group.
type request struct {
	method, path string
	query        url.Values
	body         any
	contentType  string
	gate         *lastlook.Gate // of what changes something
}

func (r request) String() string { return r.method + " " + r.path }

// answer is what came of a request.
type answer struct {
	status     int // 0: there is no whole answer
	body       []byte
	own        *metav1.Status // the API server's own error; nil: what answered is not known to be the API server
	retryAfter time.Duration
	err        error // why there is no whole answer
}

func (c *Client) send(ctx context.Context, r request) answer {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return answer{err: err}
	}
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return answer{err: err}
		}
	}
	to := c.api.JoinPath("apis", apiVersion, "namespaces", c.o.Cluster.Namespace, r.path)
	to.RawQuery = r.query.Encode()
	if r.gate != nil {
		ctx = r.gate.Trace(ctx)
	}
	out, err := http.NewRequestWithContext(ctx, r.method, to.String(), bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	out.Header.Set("Accept", "application/json")
	out.Header.Set("User-Agent", "drydock")
	if r.contentType != "" {
		out.Header.Set("Content-Type", r.contentType)
	}
	got, err := c.http.RoundTrip(out) // which follows no redirect
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = got.Body.Close() }()
	said, err := io.ReadAll(io.LimitReader(got.Body, maxAnswer+1))
	switch {
	case err != nil:
		return answer{err: fmt.Errorf("reading the answer: %w", err)}
	case len(said) > maxAnswer:
		return answer{err: fmt.Errorf("the answer is longer than %d bytes", maxAnswer)}
	}
	a := answer{status: got.StatusCode, body: said}
	if seconds, err := strconv.Atoi(got.Header.Get("Retry-After")); err == nil && seconds > 0 {
		a.retryAfter = min(time.Duration(min(seconds, 1<<20))*time.Second, remediations.AskMended)
	}
	var own metav1.Status
	if json.Unmarshal(said, &own) == nil && own.Kind == "Status" && own.Status == metav1.StatusFailure && int(own.Code) == got.StatusCode {
		a.own = &own
	}
	return a
}

// errNotFound: the API server says that there is no such object.
var errNotFound = errors.New("it does not exist")

// get reads one object of that kind.
func (c *Client) get(ctx context.Context, path, kind string, into interface{ kind() string }) error {
	return c.read(ctx, request{method: http.MethodGet, path: path}, kind, into)
}

func (o *object) kind() string { return o.Kind }

func (c *Client) read(ctx context.Context, r request, kind string, into interface{ kind() string }) error {
	a := c.send(ctx, r)
	if a.own != nil && a.own.Reason == metav1.StatusReasonNotFound && a.own.Details != nil && a.own.Details.Name != "" {
		return errNotFound
	}
	if a.err != nil || a.status != http.StatusOK {
		return c.explain(r, a)
	}
	if err := json.Unmarshal(a.body, into); err != nil || into.kind() != kind {
		return &callError{why: forSetup, text: fmt.Sprintf("the answer to %s is no %s of %s; check that nothing answers in the API server's place", r, kind, apiVersion)}
	}
	return nil
}

// page is one page of a list.
type page[T any] struct {
	metav1.TypeMeta
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []T `json:"items"`
}

func (p *page[T]) kind() string { return p.Kind }

// list reads all objects of a kind in the Cluster's namespace.
func list[T any](ctx context.Context, c *Client, path, kind string) ([]T, error) {
	var all []T
	query := url.Values{"limit": {strconv.Itoa(c.page)}}
	for range maxPages {
		var p page[T]
		if err := c.read(ctx, request{method: http.MethodGet, path: path, query: query}, kind+"List", &p); err != nil {
			return nil, err
		}
		all = append(all, p.Items...)
		if p.Metadata.Continue == "" {
			return all, nil
		}
		query.Set("continue", p.Metadata.Continue)
	}
	return nil, &callError{why: forSetup, text: fmt.Sprintf("namespace %s has more %s than are read: %d", c.o.Cluster.Namespace, path, c.page*maxPages)}
}
