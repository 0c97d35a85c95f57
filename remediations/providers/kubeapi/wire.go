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
	// maxAnswer bounds one answer. A Machine has some 6 kB.
	maxAnswer = 8 << 20
	// maxValues bounds the decoded answer. A pod, the largest object of a list, has some 700 values
	// with its managedFields, and a page has perPage objects. A decoded value takes 128 bytes at
	// most, with the growth of its list or map.
	maxValues = 300_000
	// perPage and maxPages bound a list: 10,000 objects.
	perPage  = 250
	maxPages = 40
	// maxDepth is far above the depth of any object that is read.
	maxDepth = 64
)

// transport returns the only transport of the client. It speaks HTTP/1.1, over connections that no
// other client has, so that the connection of a forbidden request can be closed.
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

// redacting remembers Drydock's credentials from each request, so that no text shows them.
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

// Request is a request to the client's group.
type Request struct {
	Method, Path string
	Query        url.Values
	Body         any
	ContentType  string
	Gate         *kit.Gate // for a request that changes something
}

func (r Request) String() string { return r.Method + " " + r.Path }

// Answer is the result of a request.
type Answer struct {
	kit.Answer
	Own *metav1.Status // the API server's own error; nil: the answer may not be the API server's
}

func failed(err error) Answer { return Answer{Answer: kit.Answer{Err: err}} }

// Send sends the request once.
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

// ErrNotFound: the API server answers that there is no such object.
var ErrNotFound = errors.New("it does not exist")

// Typed is an object, or a list, that has its kind.
type Typed interface{ GetObjectKind() schema.ObjectKind }

// Get reads one object of that kind.
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
		return kit.Refuse(kit.Setup, "the answer to %s is no %s of %s; check that nothing answers in the API server's place", r, kind, c.o.APIVersion)
	}
	return nil
}

// page is one page of a list.
type page[T any] struct {
	metav1.TypeMeta
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items items[T] `json:"items"`
}

// items are the objects of a page. Each is decoded by itself, so that an answer with more objects
// than requested is refused before they are allocated: an empty object takes three bytes in the
// answer, and a kilobyte in memory.
type items[T any] struct {
	all  []T
	most int
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *items[T]) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return err // null: there are none
	}
	for d.More() {
		if len(i.all) == i.most {
			return fmt.Errorf("%w: it has more than the %d objects that were asked for", bounded.ErrTooLarge, i.most)
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		i.all = append(i.all, one)
	}
	return nil
}

// Name is the kind, the namespace and the name of an object, for people.
func Name(o interface {
	Typed
	metav1.Object
}) string {
	return o.GetObjectKind().GroupVersionKind().Kind + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// List reads all objects of a kind that the selectors select, in the client's namespace if it has
// one.
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
		for i := range p.Items.all { // lists leave the kind of some items empty
			P(&p.Items.all[i]).GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(c.o.APIVersion, kind))
		}
		all = append(all, p.Items.all...)
		if p.Metadata.Continue == "" {
			return all, nil
		}
		query.Set("continue", p.Metadata.Continue)
	}
	return nil, kit.Refuse(kit.Setup, "there are more %s than are read: %d", path, c.Page*maxPages)
}
