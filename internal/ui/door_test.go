package ui

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTokenOpensTheDoor(t *testing.T) {
	t.Parallel()
	d := open(t, node("node-1"))
	bare := func(path string) *http.Request {
		r := d.request(http.MethodGet, path)
		r.Header.Del("Cookie")
		return r
	}
	res, body := d.do(bare("/"))
	require.Equal(t, http.StatusForbidden, res.StatusCode)
	require.Contains(t, body, "kubectl drydock ui")
	require.NotContains(t, body, "node-1", "nothing of the cluster is on a refusal")
	for _, wrong := range []string{"", "wrong", token + "x", token[1:], strings.ToUpper(token)} {
		res, _ = d.do(bare("/?token=" + wrong))
		require.Equal(t, http.StatusForbidden, res.StatusCode, "%q", wrong)
		require.Empty(t, res.Cookies())
	}

	res, body = d.do(bare("/nodes/node-1?since=7d&token=" + token))
	require.Equal(t, http.StatusSeeOther, res.StatusCode)
	require.Equal(t, "/nodes/node-1?since=7d", res.Header.Get("Location"))
	require.NotContains(t, body, token)
	require.Len(t, res.Cookies(), 1)
	c := res.Cookies()[0]
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	require.NotContains(t, c.Value, token)

	r := bare("/")
	r.AddCookie(c)
	res, body = d.do(r)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Contains(t, body, "node-1")
	require.NotContains(t, body, token, "the page itself never has it")
}

func TestTheRedirectStaysHere(t *testing.T) {
	t.Parallel()
	d := newDoor(token, http.NotFoundHandler(), func(w http.ResponseWriter, _ *http.Request, why string) { http.Error(w, why, http.StatusForbidden) })
	for path, want := range map[string]string{
		"/nodes/a b": "/nodes/a%20b", "//evil.example/x": "/evil.example/x", `/\evil.example`: "/evil.example", "///evil.example": "/evil.example",
	} {
		ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8585}))
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/?token="+token, nil)
		r.Host, r.URL.Path = "127.0.0.1:8585", path
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		require.Equal(t, http.StatusSeeOther, w.Code, path)
		require.Equal(t, want, w.Header().Get("Location"), path)
	}
}

func TestTheDoor(t *testing.T) {
	t.Parallel()
	d := open(t)
	port := d.server.URL[strings.LastIndex(d.server.URL, ":")+1:]
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	header := func(k, v string) func(*http.Request) { return func(r *http.Request) { r.Header.Set(k, v) } }
	without := func(k string) func(*http.Request) { return func(r *http.Request) { r.Header.Del(k) } }
	for name, tc := range map[string]struct {
		method string
		change []func(*http.Request)
		let    bool
	}{
		"as the page asks":              {method: "GET", let: true},
		"localhost":                     {method: "GET", change: []func(*http.Request){host("localhost:" + port)}, let: true},
		"[::1]":                         {method: "GET", change: []func(*http.Request){host("[::1]:" + port)}, let: true},
		"a name that was rebound":       {method: "GET", change: []func(*http.Request){host("evil.example:" + port)}},
		"a name below localhost":        {method: "GET", change: []func(*http.Request){host("evil.localhost:" + port)}},
		"another port":                  {method: "GET", change: []func(*http.Request){host("127.0.0.1:1")}},
		"no port":                       {method: "GET", change: []func(*http.Request){host("127.0.0.1")}},
		"another address of loopback":   {method: "GET", change: []func(*http.Request){host("127.0.0.2:" + port)}},
		"no cookie":                     {method: "GET", change: []func(*http.Request){without("Cookie")}},
		"a cookie of another process":   {method: "GET", change: []func(*http.Request){header("Cookie", cookieName(port)+"="+derive("other", "session"))}},
		"the token as cookie":           {method: "GET", change: []func(*http.Request){header("Cookie", cookieName(port)+"="+token)}},
		"typed by the user":             {method: "GET", change: []func(*http.Request){header("Sec-Fetch-Site", "none")}, let: true},
		"from the page":                 {method: "GET", change: []func(*http.Request){header("Sec-Fetch-Site", "same-origin")}, let: true},
		"from another port":             {method: "GET", change: []func(*http.Request){header("Sec-Fetch-Site", "same-site")}},
		"from another site":             {method: "GET", change: []func(*http.Request){header("Sec-Fetch-Site", "cross-site")}},
		"a foreign Origin":              {method: "GET", change: []func(*http.Request){header("Origin", "https://evil.example")}},
		"a file's Origin":               {method: "GET", change: []func(*http.Request){header("Origin", "null")}},
		"a write of the page":           {method: "POST", let: true},
		"a write with a charset":        {method: "POST", change: []func(*http.Request){header("Content-Type", "application/json; charset=utf-8")}, let: true},
		"a write without cookie":        {method: "POST", change: []func(*http.Request){without("Cookie")}},
		"a write without Origin":        {method: "POST", change: []func(*http.Request){without("Origin")}},
		"a write from another port":     {method: "POST", change: []func(*http.Request){header("Origin", "http://127.0.0.1:1")}},
		"a write over another scheme":   {method: "POST", change: []func(*http.Request){header("Origin", "https://127.0.0.1:"+port)}},
		"a form":                        {method: "POST", change: []func(*http.Request){header("Content-Type", "application/x-www-form-urlencoded")}},
		"a form of plain text":          {method: "POST", change: []func(*http.Request){header("Content-Type", "text/plain")}},
		"a write without type":          {method: "POST", change: []func(*http.Request){without("Content-Type")}},
		"a write without the header":    {method: "POST", change: []func(*http.Request){without(TokenHeader)}},
		"a write with the token itself": {method: "POST", change: []func(*http.Request){header(TokenHeader, token)}},
		"a write with the cookie twice": {method: "POST", change: []func(*http.Request){header(TokenHeader, derive(token, "session"))}},
		"another verb":                  {method: "DELETE"},
	} {
		// What is let in finds no page there; what is not does not learn even that.
		res, body := d.do(d.request(tc.method, "/no-such-page", tc.change...))
		require.Equal(t, tc.let, res.StatusCode == http.StatusNotFound, "%s: %d %s", name, res.StatusCode, body)
		require.Equal(t, !tc.let, res.StatusCode == http.StatusForbidden, "%s: %d %s", name, res.StatusCode, body)
		for k, v := range map[string]string{
			"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			require.Equal(t, v, res.Header.Get(k), "%s: %s", name, k)
		}
	}
}

func TestTheTokenDoesNotOpenForAnotherSite(t *testing.T) {
	t.Parallel()
	d := open(t)
	for name, change := range map[string]func(*http.Request){
		"a rebound name":     func(r *http.Request) { r.Host = "evil.example" },
		"a link of a site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"a script of a site": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
	} {
		res, _ := d.do(d.request(http.MethodGet, "/?token="+token, change))
		require.Equal(t, http.StatusForbidden, res.StatusCode, name)
		require.Empty(t, res.Cookies(), name)
	}
	res, _ := d.do(d.request(http.MethodGet, "/?token="+token))
	require.Equal(t, http.StatusSeeOther, res.StatusCode)
}

func TestThePortIsOnLoopbackAlone(t *testing.T) {
	t.Parallel()
	l, err := Listen(t.Context(), 0)
	require.NoError(t, err)
	defer l.Close()
	require.Contains(t, Address(l, token), "http://127.0.0.1:")
	require.True(t, strings.HasSuffix(Address(l, token), "/?token="+token))
}
