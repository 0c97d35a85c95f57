package promhttp

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/common/config"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// withTokens adds an OAuth 2 token of the grant type client_credentials. It follows no redirect of
// the token endpoint: the library's own transport would send the client's secret to the new address
// with 307 and 308. timeout bounds a token request, and dial opens its connection.
func withTokens(next http.RoundTripper, o *config.OAuth2, secret config.SecretReader, timeout time.Duration, dial config.DialContextFunc) (http.RoundTripper, error) {
	cfg := config.HTTPClientConfig{TLSConfig: o.TLSConfig, ProxyConfig: o.ProxyConfig}
	rt, err := config.NewRoundTripperFromConfig(cfg, "token", config.WithDialContextFunc(dial), config.WithUserAgent("drydock"), config.WithIdleConnTimeout(time.Minute))
	if err != nil {
		return nil, err
	}
	return &tokens{next: next, oauth2: o, secret: secret, client: &http.Client{
		Transport: rt, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

type tokens struct {
	next   http.RoundTripper
	oauth2 *config.OAuth2
	secret config.SecretReader
	client *http.Client

	mu     sync.Mutex
	with   string // the secret that source uses
	source oauth2.TokenSource
}

// RoundTrip implements http.RoundTripper.
func (t *tokens) RoundTrip(req *http.Request) (*http.Response, error) {
	secret, err := t.secret.Fetch(req.Context())
	if err != nil {
		return nil, err
	}
	return (&oauth2.Transport{Source: t.of(secret), Base: t.next}).RoundTrip(req)
}

func (t *tokens) of(secret string) oauth2.TokenSource {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.source == nil || t.with != secret {
		params := url.Values{}
		for name, value := range t.oauth2.EndpointParams {
			params.Set(name, value)
		}
		asks := clientcredentials.Config{ClientID: t.oauth2.ClientID, ClientSecret: secret, Scopes: t.oauth2.Scopes, TokenURL: t.oauth2.TokenURL, EndpointParams: params}
		t.with, t.source = secret, asks.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, t.client))
	}
	return t.source
}

// CloseIdleConnections closes the connections that no request uses.
func (t *tokens) CloseIdleConnections() {
	t.client.CloseIdleConnections()
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
