package replicas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"github.com/stretchr/testify/require"
)

func options(urls ...string) Options {
	return Options{
		Of: "Thanos", URLs: urls, Most: 2, Timeout: time.Minute,
		Lookup: func(context.Context, string) ([]string, error) { return nil, errors.New("looked up") },
		Judge:  func(*http.Request, *http.Response) error { return nil },
	}
}

func one(t *testing.T, o Options) *Endpoint {
	t.Helper()
	all, err := New(o)
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	basic := config.HTTPClientConfig{BasicAuth: &config.BasicAuth{Username: "u"}}
	var proxy config.HTTPClientConfig
	require.NoError(t, proxy.ProxyURL.UnmarshalJSON([]byte(`"http:///"`)))
	for name, c := range map[string]struct {
		urls []string
		http config.HTTPClientConfig
		want string
	}{
		"no URL":          {nil, config.HTTPClientConfig{}, "there are 0 URLs of Thanos; give at least one and at most 2"},
		"too many":        {[]string{"http://a", "http://b", "http://c"}, config.HTTPClientConfig{}, "there are 3 URLs of Thanos; give at least one and at most 2"},
		"unreadable":      {[]string{"http://a", "http://me:the-pass%zz@b"}, config.HTTPClientConfig{}, "reading URL 2 of Thanos: it is not a URL"},
		"no scheme":       {[]string{"a:80"}, config.HTTPClientConfig{}, "it must begin with http:// or https://"},
		"no host":         {[]string{"http://:80"}, config.HTTPClientConfig{}, "it names no host"},
		"a query":         {[]string{"http://a/?b=c"}, config.HTTPClientConfig{}, "http://a has a query"},
		"not ASCII":       {[]string{"http://ä"}, config.HTTPClientConfig{}, "not ASCII"},
		"twice":           {[]string{"http://a", "http://A:80/"}, config.HTTPClientConfig{}, "the URL http://a:80 of Thanos is given twice"},
		"two credentials": {[]string{"http://me:the-pass@a"}, basic, "http://a has credentials, and the HTTP configuration has credentials, too; remove one of them"},
		"two ways in":     {[]string{"http://a"}, config.HTTPClientConfig{BearerToken: "a", BearerTokenFile: "b"}, "reading the HTTP configuration of Thanos"},
		"no proxy":        {[]string{"http://a"}, proxy, "the proxy URL names no host"},
		"no CA file":      {[]string{"https://a"}, config.HTTPClientConfig{TLSConfig: config.TLSConfig{CAFile: "/nowhere/ca.pem"}}, "/nowhere/ca.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(c.urls...)
			o.HTTP = c.http
			_, err := New(o)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "the-pass")
		})
	}
}

// TestAnEndpointHasOneSpelling, without credentials. Its replicas differ by their addresses.
func TestAnEndpointHasOneSpelling(t *testing.T) {
	e := one(t, options("https://me:the-pass@Thanos.Example/prefix/"))
	require.Equal(t, "https://thanos.example:443/prefix", e.String())
	require.Equal(t, e.String(), e.URL().String())
	require.Equal(t, "https://10.0.0.1:443/prefix", e.At("10.0.0.1"))
	require.Equal(t, "https://[::1]:443/prefix", e.At("::1"))
	require.Equal(t, "https://thanos.example:443/prefix at 10.0.0.1", e.Name("10.0.0.1"))
	e = one(t, options("http://10.0.0.1"))
	require.Equal(t, "http://10.0.0.1:80", e.Name("10.0.0.1"))
}

func TestEachAddressOfTheNameIsFoundOnce(t *testing.T) {
	var found []string
	var failed error
	o := options("http://thanos.example")
	o.Lookup = func(_ context.Context, host string) ([]string, error) {
		require.Equal(t, "thanos.example", host)
		return found, failed
	}
	e := one(t, o)
	found = []string{"10.0.0.2", "10.0.0.1", "10.0.0.2"}
	all, err := e.Addresses(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"10.0.0.1", "10.0.0.2"}, all)
	require.Equal(t, "10.0.0.2", found[0], "what the resolver gave is left alone")
	for want, odd := range map[string][]string{
		"it has no address":                             {},
		"it has 3 addresses, and at most 2 are asked":   {"10.0.0.1", "10.0.0.2", "10.0.0.3"},
		`the answer "not-an-address" is not an address`: {"10.0.0.1", "not-an-address"},
	} {
		found = odd
		_, err := e.Addresses(t.Context())
		require.EqualError(t, err, "looking up the host of Thanos http://thanos.example:80: "+want)
	}
	found, failed = []string{"10.0.0.1"}, errors.New("no such host")
	_, err = e.Addresses(t.Context())
	require.ErrorIs(t, err, failed)
}

// TestAddressesAndProxiedNamesAreNotLookedUp: a proxy resolves the name itself.
func TestAddressesAndProxiedNamesAreNotLookedUp(t *testing.T) {
	o := options("http://thanos.example")
	_, err := one(t, o).Addresses(t.Context())
	require.ErrorContains(t, err, "looked up", "the control")
	require.NoError(t, o.HTTP.ProxyURL.UnmarshalJSON([]byte(`"http://proxy.example:3128"`)))
	all, err := one(t, o).Addresses(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"thanos.example"}, all)
	all, err = one(t, options("http://[::1]:9090")).Addresses(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"::1"}, all)
}

// TestAReplicaIsAskedAtItsAddressByTheName, redirects are refused, and no error shows the request's
// secret.
func TestAReplicaIsAskedAtItsAddressByTheName(t *testing.T) {
	var host, user string
	answer := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "well") }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host = r.Host
		user, _, _ = r.BasicAuth()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	address, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	o := options("http://me:the-password@thanos.example:" + port)
	var refused error
	o.Judge = func(*http.Request, *http.Response) error { return refused }
	e := one(t, o)
	r, err := e.Replica(address)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	get := func() (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.String(), http.NoBody)
		require.NoError(t, err)
		resp, err := r.Client.Do(req)
		if err != nil {
			return "", r.Explain(t.Context(), err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		return string(body), err
	}
	body, err := get()
	require.NoError(t, err)
	require.Equal(t, []string{"well", "thanos.example:" + port, "me"}, []string{body, host, user})

	refused = errors.New("the-password is in a login page")
	_, err = get()
	require.EqualError(t, err, "[secret] is in a login page")

	answer = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }
	_, err = get()
	require.EqualError(t, err, "it answered 302 Found, and redirects are not followed")

	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	require.EqualError(t, r.Explain(over, fmt.Errorf("use of closed connection")), "no complete answer within 1m0s: context deadline exceeded")
}
