// Package replicas sends requests to each address of a URL's host name separately, because several
// replicas with different answers may share one name.
package replicas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/config"
)

// Options configure the endpoints and the requests.
type Options struct {
	// Of is the name of the system in errors, for example "Alertmanager".
	Of string
	// URLs are http or https URLs, with the path prefix if there is one. Credentials in a URL are used
	// as basic authentication.
	URLs []string
	// HTTP configures authentication, TLS and the proxy. Redirects are never followed. With a proxy,
	// each URL is one replica, because the proxy resolves the name.
	HTTP config.HTTPClientConfig
	// Most is the largest number of URLs, and of addresses for each host name.
	Most int
	// Timeout is what the caller sets in the context of each request. It also limits a dial.
	Timeout time.Duration
	// Idle is how long an idle connection stays open. Zero means the library's default.
	Idle time.Duration
	// Lookup returns the addresses of a host name. It must return when its context ends. If it is nil,
	// net.DefaultResolver is used.
	Lookup func(ctx context.Context, host string) ([]string, error)
	// Judge returns an error if an answer must be refused. It also limits the body of an accepted
	// answer.
	Judge func(*http.Request, *http.Response) error
}

// Endpoint is one URL. Its host name may have several replicas.
type Endpoint struct {
	options Options
	// url has no credentials, its host is in lower case with a port, and its path does not end in a
	// slash. So two spellings of one URL are equal.
	url url.URL
	// asGiven makes requests use the host name, because a proxy resolves it.
	asGiven bool
}

// New makes the endpoints and sends no request. An error describes a fault in the options, without
// credentials.
func New(o Options) ([]*Endpoint, error) {
	if len(o.URLs) == 0 || len(o.URLs) > o.Most {
		return nil, fmt.Errorf("there are %d URLs of %s; give at least one and at most %d", len(o.URLs), o.Of, o.Most)
	}
	// Validate also copies deprecated fields to their successors.
	err := o.HTTP.Validate()
	if err == nil && o.HTTP.ProxyURL.URL != nil && o.HTTP.ProxyURL.Host == "" {
		err = errors.New("the proxy URL names no host") // checked here, because the library checks this only when it dials
	}
	if err != nil {
		return nil, fmt.Errorf("reading the HTTP configuration of %s: %w", o.Of, err)
	}
	if o.Lookup == nil {
		o.Lookup = net.DefaultResolver.LookupHost
	}
	seen := map[string]bool{}
	endpoints := make([]*Endpoint, 0, len(o.URLs))
	for i, raw := range o.URLs {
		e, err := newEndpoint(raw, o)
		if err != nil {
			return nil, fmt.Errorf("reading URL %d of %s: %w", i+1, o.Of, err)
		}
		if seen[e.String()] {
			return nil, fmt.Errorf("the URL %s of %s is given twice", e, o.Of)
		}
		seen[e.String()] = true
		// A missing file or a wrong key must be an error now, and not only at the first request.
		r, err := e.Replica(e.url.Hostname())
		if err != nil {
			return nil, fmt.Errorf("reading the HTTP configuration for %s %s: %w", o.Of, e, err)
		}
		r.Close()
		endpoints = append(endpoints, e)
	}
	return endpoints, nil
}

// newEndpoint does not quote a URL that cannot be parsed, because it may contain a password.
func newEndpoint(raw string, o Options) (*Endpoint, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("it is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("it must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("it names no host")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%s://%s has a query or a fragment; remove it", u.Scheme, u.Host)
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > '~' }):
		// A host name must be ASCII. For other names, net/http would dial the Punycode form, which the
		// dial function of Replica does not recognise.
		return nil, fmt.Errorf("the host %s is not ASCII; write it in Punycode", u.Hostname())
	}
	if u.User != nil {
		if o.HTTP.BasicAuth != nil || o.HTTP.Authorization != nil || o.HTTP.OAuth2 != nil {
			return nil, fmt.Errorf("%s://%s has credentials, and the HTTP configuration has credentials, too; remove one of them", u.Scheme, u.Host)
		}
		password, _ := u.User.Password()
		o.HTTP.BasicAuth = &config.BasicAuth{Username: u.User.Username(), Password: config.Secret(password)}
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	e := &Endpoint{options: o, url: url.URL{Scheme: u.Scheme, Host: net.JoinHostPort(strings.ToLower(u.Hostname()), port), Path: strings.TrimRight(u.Path, "/")}}
	e.asGiven = isAddress(e.url.Hostname()) || e.throughProxy()
	return e, nil
}

// throughProxy reports whether a proxy resolves the name.
func (e *Endpoint) throughProxy() bool {
	proxy := e.options.HTTP.Proxy()
	if proxy == nil {
		return false
	}
	by, err := proxy(&http.Request{URL: e.URL()})
	return err != nil || by != nil // after an error, the first request fails and reports the cause
}

// URL returns the endpoint's URL with its port, without credentials and without a slash at its end.
func (e *Endpoint) URL() *url.URL {
	u := e.url
	return &u
}

// String returns the URL as text.
func (e *Endpoint) String() string { return e.url.String() }

// Name returns the URL and the replica's address, for people. With a proxy, it is only the URL.
func (e *Endpoint) Name(address string) string {
	if e.asGiven {
		return e.String()
	}
	return fmt.Sprintf("%s at %s", e, address)
}

// At returns the URL with the address as its host.
func (e *Endpoint) At(address string) string {
	u := e.url
	u.Host = net.JoinHostPort(address, u.Port())
	return u.String()
}

// Addresses returns sorted addresses without duplicates. A name without an address is an error:
// otherwise "no replica" would look like "no alerts".
func (e *Endpoint) Addresses(ctx context.Context) ([]string, error) {
	host := e.url.Hostname()
	if e.asGiven {
		return []string{host}, nil
	}
	found, err := e.options.Lookup(ctx, host)
	found = slices.Compact(slices.Sorted(slices.Values(found)))
	odd := slices.IndexFunc(found, func(a string) bool { return !isAddress(a) })
	switch {
	case err != nil:
	case odd >= 0:
		err = fmt.Errorf("the answer %q is not an address", found[odd])
	case len(found) == 0:
		err = errors.New("it has no address")
	case len(found) > e.options.Most:
		err = fmt.Errorf("it has %d addresses, and at most %d are asked", len(found), e.options.Most)
	default:
		return found, nil
	}
	return nil, fmt.Errorf("looking up the host of %s %s: %w", e.options.Of, e, err)
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
