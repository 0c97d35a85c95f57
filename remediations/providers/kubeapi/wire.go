package kubeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/remediations/providers/kit"
)

const (
	// maxAnswer is in bytes. A Machine has about 6 kB.
	maxAnswer = 8 << 20
	// A pod is the largest object that is listed, with about 700 values, managedFields included. A
	// decoded value takes at most 128 bytes of memory.
	maxValues = 300_000
	// perPage and maxPages limit a list to 10,000 objects.
	perPage  = 250
	maxPages = 40
	// Objects that Drydock reads are far less deep.
	maxDepth = 64
)

// Only this client uses the connections, by HTTP/1.1, so that a gate can close the one of its
// request without an effect on other requests.
func (c *Client) transport(to *rest.Config) (http.RoundTripper, *http.Transport, error) {
	tls, err := rest.TLSConfigFor(to)
	if err != nil {
		return nil, nil, err
	}
	base := kit.Transport(c.o.Timeout)
	base.Proxy, base.TLSClientConfig, base.MaxIdleConnsPerHost, base.IdleConnTimeout = http.ProxyFromEnvironment, tls, 4, time.Minute
	if to.Proxy != nil {
		base.Proxy = to.Proxy
	}
	wrapped, err := rest.HTTPWrappersForConfig(to, redacting{base, c})
	return wrapped, base, err
}

// redacting records the credentials in each request, so that messages never show them.
type redacting struct {
	*http.Transport
	client *Client
}

func (h redacting) RoundTrip(r *http.Request) (*http.Response, error) {
	if secret := r.Header.Get("Authorization"); secret != "" {
		h.client.Secrets.Header("Authorization", secret)
	}
	return h.Transport.RoundTrip(r)
}

// Request is a request about objects of the client's API group. Path is the part of the URL below
// the group and the namespace, for example machines/NAME.
type Request struct {
	Method, Path string
	Query        url.Values
	Body         any
	ContentType  string
	Gate         *kit.Gate // for a request that changes something
}

func (r Request) String() string { return r.Method + " " + r.Path }

// Answer is the API server's answer to a request, or why there is none.
type Answer struct {
	kit.Answer
	Own *metav1.Status // the API server's own error; nil if the answer may come from another server
}

func failed(err error) Answer { return Answer{Answer: kit.Answer{Err: err}} }

// Send sends the request once, within the client's time limit.
func (c *Client) Send(ctx context.Context, r Request) Answer {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return failed(err)
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = json.Marshal(r.Body); err != nil {
			return failed(err)
		}
	}
	at, way, err := c.link.way(c)
	if err != nil {
		return failed(err)
	}
	to := at.JoinPath(c.place(), r.Path)
	to.RawQuery = r.Query.Encode()
	out, err := http.NewRequestWithContext(ctx, r.Method, to.String(), bytes.NewReader(body))
	if err != nil {
		return failed(err)
	}
	out.Header.Set("Accept", "application/json")
	out.Header.Set("User-Agent", "drydock")
	if r.ContentType != "" {
		out.Header.Set("Content-Type", r.ContentType)
	}
	a := Answer{Answer: kit.Exchange(way, out, bounded.Limits{Bytes: maxAnswer, Values: maxValues, Depth: maxDepth}, r.Gate)}
	var own metav1.Status
	if json.Unmarshal(a.Body, &own) == nil && own.Kind == "Status" && own.Status == metav1.StatusFailure && int(own.Code) == a.Status {
		a.Own = &own
	}
	return a
}

// ErrNotFound means that the API server answered that the object does not exist.
var ErrNotFound = errors.New("the object does not exist")

// Typed is an API object, or a list of objects, that has a kind.
type Typed interface{ GetObjectKind() schema.ObjectKind }

// Get reads the object at the path into the value into. It returns an error if the answer has
// another kind, and ErrNotFound if the object does not exist.
func (c *Client) Get(ctx context.Context, path, kind string, into Typed) error {
	return c.read(ctx, Request{Method: http.MethodGet, Path: path}, kind, into)
}

func (c *Client) read(ctx context.Context, r Request, kind string, into Typed) error {
	a := c.Send(ctx, r)
	if a.Own != nil && a.Own.Reason == metav1.StatusReasonNotFound && a.Own.Details != nil && a.Own.Details.Name != "" {
		return ErrNotFound
	}
	if a.Err != nil || a.Status != http.StatusOK {
		return c.Explain(r, a)
	}
	err := json.Unmarshal(a.Body, into)
	if errors.Is(err, bounded.ErrTooLarge) {
		return c.Explain(r, failed(err))
	}
	if err != nil || into.GetObjectKind().GroupVersionKind().Kind != kind {
		return kit.Refuse(kit.Setup, "the answer to %s is not a %s of %s; check that nothing answers instead of the API server", r, kind, c.o.APIVersion)
	}
	return nil
}

type page[T any] struct {
	metav1.TypeMeta
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items items[T] `json:"items"`
}

// items are decoded one by one, up to the requested number. A wrong answer could use too much
// memory: an empty object has three bytes in the answer, and takes a kilobyte of memory.
type items[T any] struct {
	all  []T
	most int
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *items[T]) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return err // null counts as an empty list
	}
	for d.More() {
		if len(i.all) == i.most {
			return fmt.Errorf("%w: the page has more than the %d requested objects", bounded.ErrTooLarge, i.most)
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		i.all = append(i.all, one)
	}
	return nil
}

// Name returns the kind, namespace and name of an object, for messages.
func Name(o interface {
	Typed
	metav1.Object
}) string {
	return o.GetObjectKind().GroupVersionKind().Kind + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// List returns all objects of a kind in the client's namespace. selectors are query parameters, for
// example labelSelector.
func List[T any, P interface {
	*T
	Typed
}](ctx context.Context, c *Client, path, kind string, selectors url.Values) ([]T, error) {
	var all []T
	query := url.Values{"limit": {strconv.Itoa(c.Page)}}
	maps.Copy(query, selectors)
	for range maxPages {
		p := page[T]{Items: items[T]{most: c.Page}}
		if err := c.read(ctx, Request{Method: http.MethodGet, Path: path, Query: query}, kind+"List", &p); err != nil {
			return nil, err
		}
		for i := range p.Items.all { // in a list, the kind of an item may be empty
			P(&p.Items.all[i]).GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(c.o.APIVersion, kind))
		}
		all = append(all, p.Items.all...)
		if p.Metadata.Continue == "" {
			return all, nil
		}
		query.Set("continue", p.Metadata.Continue)
	}
	return nil, kit.Refuse(kit.Setup, "there are more than %[2]d %[1]s, and Drydock reads no more", path, c.Page*maxPages)
}
