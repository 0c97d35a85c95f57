package alertmanager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/common/config"
)

// endpoint is one configured URL: a name that may stand for several replicas.
type endpoint struct {
	scheme string
	host   string // the host name or address, lower case, without a port
	port   string
	path   string // the route prefix, without a slash at its end
	// display is the URL as given, without credentials.
	display string
	// http has the URL's own credentials in it.
	http config.HTTPClientConfig
	// asGiven: the host is asked for by its name alone, never by its addresses.
	asGiven bool
}

// newEndpoint reads one URL. Its errors quote nothing of a URL that could not be
// parsed: where the password begins and ends is not known then.
func newEndpoint(raw string, cfg config.HTTPClientConfig) (*endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("it is not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("it must begin with http:// or https://")
	}
	if u.Hostname() == "" {
		return nil, errors.New("it names no host")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%s://%s has a query or a fragment, which mean nothing here", u.Scheme, u.Host)
	}
	// The dialler compares addresses with what net/http dials, which is the
	// Punycode form of any other name.
	if strings.ContainsFunc(u.Host, func(r rune) bool { return r > '~' }) {
		return nil, fmt.Errorf("the host %s is not ASCII; write it in Punycode", u.Hostname())
	}
	if u.User != nil {
		if cfg.BasicAuth != nil || cfg.Authorization != nil || cfg.OAuth2 != nil {
			return nil, fmt.Errorf("%s://%s has credentials, and so has the HTTP configuration; give one of them", u.Scheme, u.Host)
		}
		password, _ := u.User.Password()
		cfg.BasicAuth = &config.BasicAuth{Username: u.User.Username(), Password: config.Secret(password)}
	}
	e := &endpoint{
		scheme: u.Scheme,
		host:   strings.ToLower(u.Hostname()),
		port:   u.Port(),
		path:   strings.TrimRight(u.Path, "/"),
		http:   cfg,
	}
	if e.port == "" {
		e.port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	e.display = e.withHost(e.host)
	e.asGiven = isAddress(e.host) || throughProxy(&cfg, e)
	return e, nil
}

// base is the URL without credentials.
func (e *endpoint) base() *url.URL {
	return &url.URL{Scheme: e.scheme, Host: e.origin(), Path: e.path}
}

// origin is what net/http dials for this URL.
func (e *endpoint) origin() string { return net.JoinHostPort(e.host, e.port) }

// withHost is the URL with an address in place of its host. The port is always
// said, so that two spellings of one replica give one metric series.
func (e *endpoint) withHost(host string) string {
	return (&url.URL{Scheme: e.scheme, Host: net.JoinHostPort(host, e.port), Path: e.path}).String()
}

// addresses looks the name up, sorted, each address once. No address is an
// error: an empty fleet of Alertmanagers would read as "nothing fires".
func (e *endpoint) addresses(ctx context.Context, lookup func(context.Context, string) ([]string, error)) ([]string, error) {
	if e.asGiven {
		return []string{e.host}, nil
	}
	found, err := lookup(ctx, e.host)
	if err != nil {
		return nil, fmt.Errorf("looking up the host of Alertmanager %s: %w", e.display, err)
	}
	for _, a := range found {
		if !isAddress(a) {
			return nil, fmt.Errorf("looking up the host of Alertmanager %s: the answer %q is not an address", e.display, a)
		}
	}
	found = slices.Clone(found)
	slices.Sort(found)
	found = slices.Compact(found)
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("looking up the host of Alertmanager %s: it has no address", e.display)
	case len(found) > maxAddresses:
		return nil, fmt.Errorf("looking up the host of Alertmanager %s: it has %d addresses, and at most %d are asked", e.display, len(found), maxAddresses)
	}
	return found, nil
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
