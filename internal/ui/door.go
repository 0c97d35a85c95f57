package ui

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
)

const (
	// TokenParameter is where the printed address has the token.
	TokenParameter = "token"
	// TokenHeader is what a write carries beside the cookie. A page of another site can set no such header.
	TokenHeader = "X-Drydock-Token"
	// maxBody bounds what a page sends: a reason and a few words.
	maxBody = 16 << 10
)

// policy is what a browser may do with a page: nothing but what comes from this very address.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// door lets in the requests of the user's own browser, and nobody else's.
type door struct {
	token string
	// session is the cookie's value, writing the header's. Both follow from the token, which cannot be computed from them.
	session, writing string
	// refuse answers a request that is not let in.
	refuse func(w http.ResponseWriter, r *http.Request, why string)
	next   http.Handler
}

func newDoor(token string, next http.Handler, refuse func(http.ResponseWriter, *http.Request, string)) *door {
	return &door{token: token, session: derive(token, "session"), writing: derive(token, "writing"), next: next, refuse: refuse}
}

func derive(token, purpose string) string {
	h := hmac.New(sha256.New, []byte(token))
	h.Write([]byte(purpose))
	return hex.EncodeToString(h.Sum(nil))
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
		d.refuse(w, r, "The request names another host than this page's own address. Open the address that the command printed.")
		return
	}
	if why := foreign(r); why != "" {
		d.refuse(w, r, why)
		return
	}
	if r.Method == http.MethodGet && r.URL.Query().Has(TokenParameter) {
		d.enter(w, r, port)
		return
	}
	if c, err := r.Cookie(cookieName(port)); err != nil || !same(c.Value, d.session) {
		d.refuse(w, r, "This page needs the token of the command that serves it. Open the address that `kubectl drydock ui` printed.")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if why := d.unsafe(r); why != "" {
			d.refuse(w, r, why)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	}
	d.next.ServeHTTP(w, r)
}

// enter gives the cookie for the token, and the address without it, so that the token stays in no history and no copied address.
func (d *door) enter(w http.ResponseWriter, r *http.Request, port string) {
	q := r.URL.Query()
	if !same(q.Get(TokenParameter), d.token) {
		d.refuse(w, r, "The token is not the one of the command that serves this page. Open the address that `kubectl drydock ui` printed last.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(port), Value: d.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	q.Del(TokenParameter)
	// The path is made anew from its segments: one that begins with two slashes would name another host.
	to := url.URL{Path: "/" + trimSlashes(r.URL.Path), RawQuery: q.Encode()}
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

func trimSlashes(path string) string {
	for path != "" && (path[0] == '/' || path[0] == '\\') {
		path = path[1:]
	}
	return path
}

// unsafe says why a request that would change something is refused; empty: it is not.
func (d *door) unsafe(r *http.Request) string {
	if r.Method != http.MethodPost {
		return "Only GET and POST are understood here."
	}
	if r.Header.Get("Origin") != "http://"+r.Host {
		return "A change must come from this page itself: the request has no Origin, or another one."
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return "A change must be sent as application/json."
	}
	if !same(r.Header.Get(TokenHeader), d.writing) {
		return "A change must carry the header " + TokenHeader + ", which only this page knows."
	}
	return ""
}

// foreign says why a request came from another page; empty: from the user, or from this page.
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

// ownPort is the port that the request arrived at, and whether its Host is this address by a name of loopback. Another name that
// resolves to loopback is how a stranger's page would get in (DNS rebinding).
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

// cookieName has the port, because cookies do not: two clusters' pages are open at once.
func cookieName(port string) string { return "drydock-ui-" + port }

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
