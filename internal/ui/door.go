package ui

import (
	"crypto/subtle"
	"html"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

const (
	// tokenParameter is in the printed address. fileParameter is in the file that opens the browser.
	tokenParameter = "token"
	fileParameter  = "open"
	// tokenHeader is what a write needs besides the cookie. A page of another site cannot set it.
	tokenHeader = "X-Drydock-Token"
	// maxBody is in bytes. A body has a reason and a few short parameters.
	maxBody = 16 << 10
)

// policy is the Content-Security-Policy: the page may load content only from its own address.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// door admits only requests from the browser of the user who started the command.
type door struct {
	mu sync.Mutex
	// token is in the last printed address. fileToken is in the file that opens the browser. Each
	// works only once, so that it is useless to a program that reads it later. A token is empty if
	// there is none.
	token, fileToken string
	// session is the cookie's value. writing is the value of the header tokenHeader.
	session, writing string
	// root is the secret prefix of every path, and the cookie's path. A browser sends a cookie to all
	// ports of a host, so other programs on this machine could receive it. With this path, it goes
	// only to addresses below root.
	root string
	// entered is called after a token was used. next is the new token, or empty if the printed address
	// is still valid. entered may be nil.
	entered func(next string)
	refuse  func(w http.ResponseWriter, r *http.Request, why string)
	next    http.Handler
}

func newDoor(token string, next http.Handler, refuse func(http.ResponseWriter, *http.Request, string)) *door {
	return &door{token: token, session: NewToken(), writing: NewToken(), root: "/" + NewToken(), next: next, refuse: refuse}
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	port, own := ownPort(r)
	if !own {
		d.refuse(w, r, "The request has the Host of another page. Open the address that the command printed.")
		return
	}
	if r.Method == http.MethodGet && r.URL.Path == "/" && r.URL.Query().Has(fileParameter) && opened(r) {
		d.enterByFile(w, r, port)
		return
	}
	if why := foreign(r); why != "" {
		d.refuse(w, r, why)
		return
	}
	if r.Method == http.MethodGet && r.URL.Query().Has(tokenParameter) {
		d.enter(w, r, port)
		return
	}
	path, within := strings.CutPrefix(r.URL.Path, d.root)
	if !within || !strings.HasPrefix(path, "/") || !slices.ContainsFunc(r.CookiesNamed(cookieName(port)), func(c *http.Cookie) bool { return same(c.Value, d.session) }) {
		d.refuse(w, r, "Your browser has not been admitted to this page yet. Open the address that `kubectl drydock ui` printed last.")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if why := d.unsafe(r); why != "" {
			d.refuse(w, r, why)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	}
	http.StripPrefix(d.root, d.next).ServeHTTP(w, r)
}

// enter redirects to the address without the token, so that the token stays in no browser history
// and no copied address.
func (d *door) enter(w http.ResponseWriter, r *http.Request, port string) {
	q := r.URL.Query()
	next := NewToken()
	if !d.spend(&d.token, q.Get(tokenParameter), next) {
		d.refuse(w, r, "The token in this address is wrong or was already used: each address opens the page once. Open the address that `kubectl drydock ui` printed last.")
		return
	}
	d.welcome(w, port, next)
	q.Del(tokenParameter)
	// The slashes are trimmed because a path that begins with two slashes would lead to another host.
	to := url.URL{Path: d.root + "/" + trimSlashes(r.URL.Path), RawQuery: q.Encode()}
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

// enterByFile is for the browser that was started with the file. It answers with a page that opens
// the address, and not with a redirect. Browsers treat the file as another site. After a redirect
// from another site, they send no SameSite=Strict cookie.
func (d *door) enterByFile(w http.ResponseWriter, r *http.Request, port string) {
	if !d.spend(&d.fileToken, r.URL.Query().Get(fileParameter), "") {
		d.refuse(w, r, "This file has already opened the page, and works only once. Open the address that `kubectl drydock ui` printed last.")
		return
	}
	d.welcome(w, port, "")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, onward(d.root+"/"))
}

func onward(address string) string {
	address = html.EscapeString(address)
	return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=` +
		address + `"><title>Drydock</title><a href="` + address + `">Open the page of kubectl drydock ui</a></html>` + "\n"
}

func (d *door) spend(token *string, given, next string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if *token == "" || !same(given, *token) {
		return false
	}
	*token = next
	return true
}

func (d *door) welcome(w http.ResponseWriter, port, next string) {
	http.SetCookie(w, &http.Cookie{Name: cookieName(port), Value: d.session, Path: d.root, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	if d.entered != nil {
		d.entered(next)
	}
}

// opened reports whether the address is opened as a page, and not as a part of another page.
func opened(r *http.Request) bool {
	mode, to, origin := r.Header.Get("Sec-Fetch-Mode"), r.Header.Get("Sec-Fetch-Dest"), r.Header.Get("Origin")
	return (mode == "" || mode == "navigate") && (to == "" || to == "document") && origin == ""
}

func trimSlashes(path string) string {
	for path != "" && (path[0] == '/' || path[0] == '\\') {
		path = path[1:]
	}
	return path
}

// unsafe returns why a request that changes something is refused, or "" if it is allowed.
func (d *door) unsafe(r *http.Request) string {
	if r.Method != http.MethodPost {
		return "This page accepts only GET and POST requests."
	}
	if r.Header.Get("Origin") != "http://"+r.Host {
		return "A change must come from this page itself: the request has no Origin header, or that of another page."
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return "A change must be sent as application/json."
	}
	if !same(r.Header.Get(tokenHeader), d.writing) {
		return "A change must carry the header " + tokenHeader + ", which only this page knows."
	}
	return ""
}

// foreign returns why a request from another site is refused. It returns "" if the request comes
// from the user or from this page.
func foreign(r *http.Request) string {
	const why = "The request comes from another site. Paste the address into the browser's address bar instead of following a link to it."
	if o := r.Header.Get("Origin"); o != "" && o != "http://"+r.Host {
		return why
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return ""
	}
	return why
}

// ownPort returns the port at which the request arrived. own is true if Host is a usual name of
// loopback with this port. With DNS rebinding, a name of another site could lead to this program.
func ownPort(r *http.Request) (port string, own bool) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return "", false
	}
	_, port, err := net.SplitHostPort(local.String())
	if err != nil {
		return "", false
	}
	names := []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port}
	if port == "80" {
		names = append(names, "127.0.0.1", "localhost", "[::1]")
	}
	return port, slices.Contains(names, r.Host)
}

// cookieName contains the port. Browsers send a cookie to every port of a host, so the pages of two
// clusters need different names.
func cookieName(port string) string { return "drydock-ui-" + port }

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
