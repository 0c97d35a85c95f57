package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/browser"
	"drydock.dev/drydock/remediations"
)

const writeHeader = "X-Drydock-Token"

var writeToken = regexp.MustCompile(`<meta name="drydock-token" content="([^"]+)">`)

// visitor is a program that has what a user's browser has: the cookie, and the token that each page
// contains for its changes.
type visitor struct {
	t       *testing.T
	page    *lab.Page
	client  *http.Client
	writing string
	// root is the common beginning of the page's addresses.
	root string
}

func newVisitor(t *testing.T, p *lab.Page) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	v := &visitor{t: t, page: p, client: &http.Client{Jar: jar}}
	address, err := p.Fresh(t.Context())
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	res, err := v.client.Do(req)
	require.NoError(t, err)
	_ = res.Body.Close()
	v.root = strings.TrimSuffix(p.Origin+res.Request.URL.Path, "/")
	code, body := v.ask(http.MethodGet, v.root+"/", "", nil)
	require.Equal(t, http.StatusOK, code, body)
	found := writeToken.FindStringSubmatch(body)
	require.NotNil(t, found, "the page carries the token for its changes")
	v.writing = found[1]
	return v
}

// ask sends one request. change may be nil.
func (v *visitor) ask(method, address, body string, change func(*http.Request)) (int, string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, address, strings.NewReader(body))
	require.NoError(v.t, err)
	if change != nil {
		change(req)
	}
	res, err := v.client.Do(req)
	require.NoError(v.t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(v.t, err)
	return res.StatusCode, string(text)
}

// pausing is the change that these tests try to make.
func pausing(node string) (path, body string) {
	return "/nodes/" + node + "/words/pause", `{"params": {"why": "disk"}}`
}

// tried returns the change with the number of its try, so that nothing but the tested check refuses
// it.
func (v *visitor) tried(path, body string) string {
	v.t.Helper()
	code, text := v.ask(http.MethodPost, v.root+path, strings.TrimSuffix(body, "}")+`, "dryRun": true}`, v.right)
	require.Equal(v.t, http.StatusOK, code, text)
	var said struct{ Click string }
	require.NoError(v.t, json.Unmarshal([]byte(text), &said))
	return strings.TrimSuffix(body, "}") + `, "click": "` + said.Click + `"}`
}

// right is the request that the page's own script sends.
func (v *visitor) right(r *http.Request) {
	r.Header.Set("Origin", v.page.Origin)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(writeHeader, v.writing)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
}

func TestTheDoorRefusesOtherBrowsers(t *testing.T) {
	c := newCluster(t)
	p := c.ui("")
	v := newVisitor(t, p)
	stranger := &visitor{t: t, page: p, client: &http.Client{}}
	const elsewhere = "http://evil.example"
	for _, path := range []string{"/", "/nodes/node-4", "/queue", "/report?since=7d", "/fleet.json", "/nodes/node-4.json", "/queue.json", "/report.json", "/static/script.js"} {
		code, body := v.ask(http.MethodGet, v.root+path, "", nil)
		require.Equal(t, http.StatusOK, code, "%s: %s", path, body)
		for what, refused := range map[string]func() (int, string){
			"without the token": func() (int, string) { return stranger.ask(http.MethodGet, v.root+path, "", nil) },
			"with another token": func() (int, string) {
				other, err := url.Parse(v.root + path)
				require.NoError(t, err)
				other.RawQuery = url.Values{"token": {strings.Repeat("0", 64)}}.Encode()
				return stranger.ask(http.MethodGet, other.String(), "", nil)
			},
			"with another Host": func() (int, string) {
				return v.ask(http.MethodGet, v.root+path, "", func(r *http.Request) { r.Host = "evil.example" })
			},
			"with another Origin": func() (int, string) {
				return v.ask(http.MethodGet, v.root+path, "", func(r *http.Request) { r.Header.Set("Origin", elsewhere) })
			},
			"from another site": func() (int, string) {
				return v.ask(http.MethodGet, v.root+path, "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
			},
		} {
			code, body := refused()
			require.Equal(t, http.StatusForbidden, code, "%s %s: %s", path, what, body)
			require.NotContains(t, body, "node-4", "%s %s", path, what)
		}
	}
}

func TestAChangeComesFromThePageItself(t *testing.T) {
	c := newCluster(t)
	p := c.ui("")
	v := newVisitor(t, p)
	const node = "node-5"
	path, body := pausing(node)
	body = v.tried(path, body)
	for what, wrong := range map[string]func(*http.Request){
		"without the page's token":       func(r *http.Request) { r.Header.Del(writeHeader) },
		"with another token":             func(r *http.Request) { r.Header.Set(writeHeader, strings.Repeat("0", 64)) },
		"without an Origin":              func(r *http.Request) { r.Header.Del("Origin") },
		"with another Origin":            func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"with the Origin null":           func(r *http.Request) { r.Header.Set("Origin", "null") },
		"with another Host":              func(r *http.Request) { r.Host = "evil.example" },
		"as a form":                      func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") },
		"as text, as a form may":         func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		"from another site":              func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"from another port of this host": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
	} {
		code, text := v.ask(http.MethodPost, v.root+path, body, func(r *http.Request) { v.right(r); wrong(r) })
		require.Equal(t, http.StatusForbidden, code, "%s: %s", what, text)
	}
	code, text := (&visitor{t: t, page: p, client: &http.Client{}}).ask(http.MethodPost, v.root+path, body, v.right)
	require.Equal(t, http.StatusForbidden, code, "without the cookie: %s", text)
	_, _ = v.ask(http.MethodGet, v.root+path, "", nil) // as a click on a link would
	require.NotContains(t, c.node(node).Annotations, remediations.PauseKey)

	code, text = v.ask(http.MethodPost, v.root+path, body, v.right)
	require.Equal(t, http.StatusOK, code, text)
	require.Contains(t, c.node(node).Annotations, remediations.PauseKey)
}

// Another site is open in the same browser, which sends the page's cookie there.
func TestAnotherSiteChangesNothing(t *testing.T) {
	c := newCluster(t)
	p := c.ui("")
	const node = "node-6"
	path, body := pausing(node)
	v := newVisitor(t, p)
	body = v.tried(path, body) // this site knows everything except the cookie and the page's own token
	var mu sync.Mutex
	cookies := ""
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		cookies += r.Header.Get("Cookie")
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/form" {
			fmt.Fprintf(w, `<!doctype html><form method="post" action="%s" enctype="text/plain"><input name='{"why":"' value='"}'></form><script>document.forms[0].submit()</script>`, v.root+path)
			return
		}
		fmt.Fprintf(w, `<!doctype html><script>
const tries = [
  () => fetch(%[1]q, {method: "POST", mode: "no-cors", credentials: "include", body: %[2]q}),
  () => fetch(%[1]q, {method: "POST", credentials: "include", body: %[2]q, headers: {"Content-Type": "application/json"}}),
  () => fetch(%[3]q, {credentials: "include"}).then(r => r.text()),
];
Promise.all(tries.map(t => t().then(r => typeof r === "string" ? r : "", () => ""))).then(all => { window.read = all.join("") + "." });
</script>`, v.root+path, body, v.root+"/fleet.json")
	}))
	t.Cleanup(evil.Close)

	at := tab(t)
	c.open(at, p, "/") // now the browser has the cookie
	// For a cookie, 127.0.0.1 with another port is the same site, and localhost is another one.
	for _, site := range []string{evil.URL, strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)} {
		require.NoError(t, at.Open(t.Context(), site+"/script"))
		await(t, at, "the site has tried all", "window.read")
		read, err := browser.Eval[string](t.Context(), at, "window.read")
		require.NoError(t, err)
		require.Equal(t, ".", read, "nothing could be read")
		require.NoError(t, at.Open(t.Context(), site+"/form"))
		await(t, at, "the form arrived, and was refused", "location.origin === "+quoted(p.Origin)+` && document.readyState === "complete"`)
		require.NotContains(t, c.node(node).Annotations, remediations.PauseKey, "from %s", site)
	}
	mu.Lock()
	require.Empty(t, cookies, "a browser sends the page's cookie to no other port")
	mu.Unlock()

	// The control: the same change from the page itself.
	c.open(at, p, "/")
	code, err := browser.Eval[int](t.Context(), at, fmt.Sprintf(`fetch(%q, {method: "POST", body: %q, headers: {"Content-Type": "application/json",
		%q: document.querySelector('meta[name="drydock-token"]').content}}).then(r => r.status)`, v.root+path, body, writeHeader))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, c.node(node).Annotations, remediations.PauseKey)
}

// The token does not appear where others could see it: in the address bar, in the history, or in
// requests to other sites.
func TestTheTokenStaysOutOfSight(t *testing.T) {
	c := newCluster(t)
	p := c.ui("")
	at := tab(t)
	c.open(at, p, "/")
	where, err := browser.Eval[string](t.Context(), at, "location.href + document.referrer + document.documentElement.outerHTML")
	require.NoError(t, err)
	token, err := url.Parse(p.Address)
	require.NoError(t, err)
	require.NotContains(t, where, token.Query().Get("token"))
	require.Contains(t, where, p.Origin)
	hidden, err := browser.Eval[string](t.Context(), at, "document.cookie")
	require.NoError(t, err)
	require.Empty(t, hidden, "no script can read the cookie")

	code, body := (&visitor{t: t, page: p, client: &http.Client{}}).ask(http.MethodGet, p.Address, "", nil)
	require.Equal(t, http.StatusForbidden, code, "whoever reads the address later: %s", body)
	require.Contains(t, body, "each address opens the page once")
}

// A browser that the command starts gets a file, and no secret is in its arguments. The address
// that opened the page opens it only once.
func TestABrowserIsStartedWithoutASecretInItsArguments(t *testing.T) {
	c := newCluster(t)
	program, err := c.lab.PluginProgram(t.Context())
	require.NoError(t, err)
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$@\" > " + filepath.Join(dir, "arguments.part") + "\nmv " + filepath.Join(dir, "arguments.part") + " " + filepath.Join(dir, "arguments") + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700))
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, "ui", "--kubeconfig", c.lab.AdminKubeconfig())
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH")}
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	var arguments []byte
	require.Eventually(t, func() bool {
		arguments, err = os.ReadFile(filepath.Join(dir, "arguments"))
		return err == nil
	}, lab.Patience, pause)
	address := strings.TrimSpace(string(arguments))
	require.True(t, strings.HasPrefix(address, "file://"), address)
	require.NotContains(t, address, "token")

	at := tab(t)
	require.NoError(t, at.Open(t.Context(), address))
	await(t, at, "the fleet is shown", tile("node-1"))
	where, err := browser.Eval[string](t.Context(), at, "location.href + document.referrer")
	require.NoError(t, err)
	require.NotContains(t, where, "open=")
	require.Eventually(t, func() bool {
		_, err := os.Stat(strings.TrimPrefix(address, "file://"))
		return os.IsNotExist(err)
	}, lab.Patience, pause, "the file is gone")
}
