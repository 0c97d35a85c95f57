package ui

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTokenOpensTheDoor(t *testing.T) {
	t.Parallel()
	var printed []string
	d := openBy(t, func(o *Options) { o.Entered = func(next string) { printed = append(printed, next) } }, nil, node("node-1"))
	bare := d.bare
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
	require.Equal(t, d.door.root+"/nodes/node-1?since=7d", res.Header.Get("Location"))
	require.NotContains(t, body, token)
	require.Len(t, res.Cookies(), 1)
	c := res.Cookies()[0]
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	require.NotContains(t, c.Value, token)
	require.Equal(t, d.door.root, c.Path, "a browser sends it to no other port that does not know this path")

	r := bare(d.door.root + "/")
	r.AddCookie(c)
	res, body = d.do(r)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Contains(t, body, "node-1")
	require.NotContains(t, body, token, "the page itself never has it")

	res, body = d.do(bare("/?token=" + token))
	require.Equal(t, http.StatusForbidden, res.StatusCode, "it is spent")
	require.Contains(t, body, "each address opens the page once")
	require.Empty(t, res.Cookies())
	require.Len(t, printed, 1)
	res, _ = d.do(bare("/?token=" + printed[0]))
	require.Equal(t, http.StatusSeeOther, res.StatusCode, "the next one is good")
	require.Len(t, printed, 2)
}

// bare is a request without the cookie, at a path that may be outside the page.
func (d *desk) bare(path string) *http.Request {
	d.t.Helper()
	r := d.request(http.MethodGet, "/")
	var err error
	r.URL, err = url.Parse(d.server.URL + path)
	require.NoError(d.t, err)
	r.Header.Del("Cookie")
	return r
}

// TestTheCookieIsOnlyForItsPath: at a path that others know, it gives no access.
func TestTheCookieIsOnlyForItsPath(t *testing.T) {
	t.Parallel()
	d := open(t, node("node-1"))
	for path, let := range map[string]bool{"": true, "x": false} {
		r := d.request(http.MethodGet, "/")
		r.URL.Path = d.door.root + path + "/"
		res, _ := d.do(r)
		require.Equal(t, let, res.StatusCode == http.StatusOK, path)
	}
	for _, path := range []string{"/", "/nodes/node-1", "/static/script.js"} {
		r := d.request(http.MethodGet, path)
		r.URL.Path = path
		res, body := d.do(r)
		require.Equal(t, http.StatusForbidden, res.StatusCode, path)
		require.NotContains(t, body, d.door.root)
	}
	r := d.request(http.MethodGet, "/")
	tossed := &http.Cookie{Name: cookieName(d.server.URL[strings.LastIndex(d.server.URL, ":")+1:]), Value: "of another program"}
	r.Header.Set("Cookie", tossed.String()+"; "+r.Header.Get("Cookie"))
	res, _ := d.do(r)
	require.Equal(t, http.StatusOK, res.StatusCode, "another program's cookie of the same name closes nothing")
}

// TestABrowserIsStartedWithAFile: no argument has a secret, and the file's token is used up at
// once.
func TestABrowserIsStartedWithAFile(t *testing.T) {
	t.Parallel()
	l, err := Listen(t.Context(), 0)
	require.NoError(t, err)
	defer l.Close()
	const secret = "of-the-file"
	path, remove, err := OpeningFile(l, secret)
	require.NoError(t, err)
	require.NotContains(t, path, secret)
	file, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), file.Mode().Perm())
	dir, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), dir.Mode().Perm())
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(page), "url=http://"+l.Addr().String()+"/?open="+secret)
	remove()
	require.NoDirExists(t, filepath.Dir(path))

	var entered []string
	d := openBy(t, func(o *Options) {
		o.FileToken = secret
		o.Entered = func(next string) { entered = append(entered, next) }
	}, nil, node("node-1"))
	byFile := func(token string, change ...func(*http.Request)) (answer, string) {
		r := d.bare("/?open=" + token)
		r.Header.Set("Sec-Fetch-Site", "cross-site") // a browser sends this for a file's page
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		r.Header.Set("Sec-Fetch-Dest", "document")
		for _, c := range change {
			c(r)
		}
		return d.do(r)
	}
	for name, change := range map[string]func(*http.Request){
		"a script of a site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Mode", "no-cors") },
		"a frame of a site":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Dest", "iframe") },
		"with an Origin":     func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"a rebound name":     func(r *http.Request) { r.Host = "evil.example" },
	} {
		res, _ := byFile(secret, change)
		require.Equal(t, http.StatusForbidden, res.StatusCode, name)
	}
	for _, wrong := range []string{"", "x", token} {
		res, _ := byFile(wrong)
		require.Equal(t, http.StatusForbidden, res.StatusCode, "%q", wrong)
	}
	res, body := byFile(secret)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Contains(t, body, `url=`+d.door.root+`/"`)
	require.Len(t, res.Cookies(), 1)
	require.Equal(t, []string{""}, entered, "the printed address is still good")
	res, body = byFile(secret)
	require.Equal(t, http.StatusForbidden, res.StatusCode, "it is spent")
	require.NotContains(t, body, d.door.root)
	res, _ = d.do(d.bare("/?token=" + token))
	require.Equal(t, http.StatusSeeOther, res.StatusCode)
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
		require.Equal(t, d.root+want, w.Header().Get("Location"), path)
		d.token = token // it was used
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
		"not a port":                    {method: "GET", change: []func(*http.Request){host("127.0.0.1")}},
		"another address of loopback":   {method: "GET", change: []func(*http.Request){host("127.0.0.2:" + port)}},
		"no cookie":                     {method: "GET", change: []func(*http.Request){without("Cookie")}},
		"a cookie of another process":   {method: "GET", change: []func(*http.Request){header("Cookie", cookieName(port)+"="+strings.Repeat("0", len(d.door.session)))}},
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
		"a write without the header":    {method: "POST", change: []func(*http.Request){without(tokenHeader)}},
		"a write with the token itself": {method: "POST", change: []func(*http.Request){header(tokenHeader, token)}},
		"a write with the cookie twice": {method: "POST", change: []func(*http.Request){header(tokenHeader, d.door.session)}},
		"another verb":                  {method: "DELETE"},
	} {
		// An admitted request finds no page there. A refused one does not learn even that.
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

func TestTheTokenIsRefusedFromAnotherSite(t *testing.T) {
	t.Parallel()
	d := open(t)
	for name, change := range map[string]func(*http.Request){
		"a rebound name":     func(r *http.Request) { r.Host = "evil.example" },
		"a link of a site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"a script of a site": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
	} {
		r := d.bare("/?token=" + token)
		change(r)
		res, _ := d.do(r)
		require.Equal(t, http.StatusForbidden, res.StatusCode, name)
		require.Empty(t, res.Cookies(), name)
	}
	res, _ := d.do(d.bare("/?token=" + token))
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
