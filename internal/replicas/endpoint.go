// Package replicas sends requests to each address of a URL's host name separately. One name may
// have several replicas, each with its own answer.
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
	// Of is the name of the system in errors: "Alertmanager".
	Of string
	// URLs are http or https, each with its path if it has a prefix. Credentials in a URL are used
	// as basic authentication.
	URLs []string
	// HTTP configures authentication and TLS. Redirects are never followed, whatever it says. With
	// a proxy, names are not resolved here: each URL is one replica.
	HTTP config.HTTPClientConfig
	// Most bounds the URLs, and the addresses of each name.
	Most int
	// Timeout is the timeout that the caller sets in the requests' contexts. It also bounds
	// dialling.
	Timeout time.Duration
	// Idle is how long an idle connection stays open. Zero: the library's default.
	Idle time.Duration
	// Lookup returns the addresses of a host name. It must return when its context ends. Nil:
	// net.DefaultResolver. Tests replace it.
	Lookup func(ctx context.Context, host string) ([]string, error)
	// Judge returns an error for an answer to refuse, and bounds the body of an accepted one.
	Judge func(*http.Request, *http.Response) error
}

// Endpoint is one URL. Its host name may have several replicas.
type Endpoint struct {
	options Options
	// url has no credentials. Its host is in lower case and has a port, as net/http dials it, so
	// that two spellings of one URL are equal. Its path does not end in a slash.
	url url.URL
	// asGiven: requests use the host name, never its addresses.
	asGiven bool
}

// New reads the URLs. It sends no request. An error describes the fault in the options, without
// credentials.
func New(o Options) ([]*Endpoint, error) {
	if len(o.URLs) == 0 || len(o.URLs) > o.Most {
		return nil, fmt.Errorf("%d URLs of %s are given; at least one is needed, and at most %d are allowed", len(o.URLs), o.Of, o.Most)
	}
	// Validate also moves deprecated fields to their successors, in this copy.
	err := o.HTTP.Validate()
	if err == nil && o.HTTP.ProxyURL.URL != nil && o.HTTP.ProxyURL.Host == "" {
		err = errors.New("the proxy URL names no host") // the library reads it only when it dials
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
		// A missing file or a wrong key fails now, and not only at the first request.
		r, err := e.Replica(e.url.Hostname())
		if err != nil {
			return nil, fmt.Errorf("reading the HTTP configuration for %s %s: %w", o.Of, e, err)
		}
		r.Close()
		endpoints = append(endpoints, e)
	}
	return endpoints, nil
}

// newEndpoint reads one URL. Its errors quote nothing of a URL that could not be parsed: the place
// of the password is unknown then.
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
		return nil, fmt.Errorf("%s://%s has a query or a fragment, which mean nothing here", u.Scheme, u.Host)
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > '~' }):
		// The dialler compares addresses with what net/http dials, which is the Punycode form of
		// other names.
		return nil, fmt.Errorf("the host %s is not ASCII; write it in Punycode", u.Hostname())
	}
	if u.User != nil {
		if o.HTTP.BasicAuth != nil || o.HTTP.Authorization != nil || o.HTTP.OAuth2 != nil {
			return nil, fmt.Errorf("%s://%s has credentials, and so has the HTTP configuration; give one of them", u.Scheme, u.Host)
		}
		password, _ := u.User.Password()
		o.HTTP.BasicAuth = &config.BasicAuth{Username: u.User.Username(), Password: config.Secret(password)}
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	e := &Endpoint{options: o, url: url.URL{Scheme: u.Scheme, Host: net.JoinHostPort(strings.ToLower(u.Hostname()), port), Path: strings.TrimRight(u.Path, "/")}}
	e.asGiven = isAddress(e.url.Hostname()) || e.throughProxy()
	return e, nil
}

// throughProxy reports whether requests use a proxy, which then resolves and dials.
func (e *Endpoint) throughProxy() bool {
	proxy := e.options.HTTP.Proxy()
	if proxy == nil {
		return false
	}
	by, err := proxy(&http.Request{URL: e.URL()})
	return err != nil || by != nil // the first request returns an error again, with its cause
}

// URL returns the endpoint's URL, without credentials, with its port, and without a slash at its
// end.
func (e *Endpoint) URL() *url.URL {
	u := e.url
	return &u
}

// String is the URL as text.
func (e *Endpoint) String() string { return e.url.String() }

// Name is the replica's name for people: the URL, and the address if it differs from the URL's
// host.
func (e *Endpoint) Name(address string) string {
	if e.asGiven {
		return e.String()
	}
	return fmt.Sprintf("%s at %s", e, address)
}

// At returns the URL with the address in place of its host.
func (e *Endpoint) At(address string) string {
	u := e.url
	u.Host = net.JoinHostPort(address, u.Port())
	return u.String()
}

// Addresses resolves the name: sorted, without duplicates. No address is an error: otherwise "no
// replica" would look like "no alerts".
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
