package kilo

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	promconfig "github.com/prometheus/common/config"

	"drydock.dev/drydock/internal/promhttp"
	"drydock.dev/drydock/internal/redact"
)

// endpointOf is one configured URL of Prometheus: a name may stand for several of them.
type endpointOf struct {
	url  url.URL
	http promconfig.HTTPClientConfig
	// asGiven: the host is asked for by its name alone, never by its addresses.
	asGiven bool
	// secrets are what proves who Drydock is. No text shows them.
	secrets *redact.Keyring
}

func newEndpoints(urls []string, cfg promconfig.HTTPClientConfig) ([]*endpointOf, error) {
	if len(urls) == 0 || len(urls) > maxURLs {
		return nil, fmt.Errorf("%d URLs of Prometheus are given (providers.kilo.prometheus); give 1 to %d", len(urls), maxURLs)
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("reading the HTTP configuration of Prometheus (providers.kilo.httpConfig): %w", err)
	}
	var out []*endpointOf
	for i, text := range urls {
		u, err := url.Parse(text)
		switch {
		case err != nil: // which quotes a password that may be in it
			return nil, fmt.Errorf("URL %d of Prometheus is not a URL", i+1)
		case (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "":
			return nil, fmt.Errorf("URL %d of Prometheus must have a scheme, http or https, a host, and no query", i+1)
		case u.User != nil:
			return nil, fmt.Errorf("URL %d of Prometheus has credentials in it; give them in httpConfig", i+1)
		}
		if u.Port() == "" {
			u.Host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		}
		e := &endpointOf{url: *u, http: cfg, secrets: &redact.Keyring{Mark: "[secret]", Most: maxText}}
		e.asGiven = isAddress(u.Hostname()) || throughProxy(&cfg, u)
		client, err := e.client(u.Hostname())
		if err != nil { // said now rather than at the first look: a missing file or a wrong key
			return nil, fmt.Errorf("reading the HTTP configuration for Prometheus %s: %w", u, err)
		}
		client.CloseIdleConnections()
		out = append(out, e)
	}
	return out, nil
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// throughProxy says whether requests leave by a proxy, which then does the resolving and dialling.
func throughProxy(cfg *promconfig.HTTPClientConfig, u *url.URL) bool {
	proxy := cfg.Proxy()
	if proxy == nil {
		return false
	}
	by, err := proxy(&http.Request{URL: u})
	return err != nil || by != nil // an error is said again, with its cause, by the first request
}

// addresses looks the name up, each address once.
func (e *endpointOf) addresses(ctx context.Context, lookup func(context.Context, string) ([]string, error)) ([]string, error) {
	host := e.url.Hostname()
	if e.asGiven {
		return []string{host}, nil
	}
	found, err := lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("looking up the host of Prometheus %s: %w", &e.url, err)
	}
	found = slices.Clone(found)
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) == 0 || len(found) > maxAddresses || slices.ContainsFunc(found, func(a string) bool { return !isAddress(a) }) {
		return nil, fmt.Errorf("looking up the host of Prometheus %s: it has %d addresses, and from 1 to %d are asked", &e.url, len(found), maxAddresses)
	}
	return found, nil
}

// at names the one that is asked.
func (e *endpointOf) at(address string) string {
	if e.asGiven {
		return e.url.String()
	}
	return fmt.Sprintf("%s at %s", &e.url, address)
}

// client dials the address, and no other. The request's URL keeps the name, so the Host header and the name that TLS
// checks stay right. Files that the configuration names are read here, so a changed one is seen by the next look.
func (e *endpointOf) client(address string) (*http.Client, error) {
	origin, target := strings.ToLower(e.url.Host), net.JoinHostPort(address, e.url.Port())
	dialer := &net.Dialer{Timeout: defaultTimeout} // net/http dials on after the request's context has ended
	rt, err := promhttp.New(e.http, "prometheus", defaultTimeout, func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !e.asGiven && strings.ToLower(addr) == origin {
			addr = target
		}
		return dialer.DialContext(ctx, network, addr)
	})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: guard{rt, e.secrets}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}
