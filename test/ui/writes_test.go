package ui

import (
	"bytes"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/browser"
	"drydock.dev/drydock/remediations"
)

// The answer to a write may be late, lost or cut. The page then shows what it knows, with the name
// of the cluster, and sends the write only once.
func TestAWriteWhoseAnswerIsLostIsShownAsItIs(t *testing.T) {
	c := newCluster(t)
	proxy, err := c.lab.NewProxy()
	require.NoError(t, err)
	p := c.ui(c.account("patches", strings.Replace(readsAll, "verbs: [get, list, watch]", "verbs: [get, list, watch, patch]", 1), proxy.URL()))
	at := tab(t)
	cluster := "Cluster lab (" + proxy.URL() + "): "
	late := make(chan struct{})
	t.Cleanup(func() { close(late) })
	write := func(r *http.Request) bool { return r.Method == http.MethodPatch && !r.URL.Query().Has("dryRun") }
	for _, f := range []struct {
		name, node string
		// before and after are hooks for the write and for its answer.
		before, after func() lab.Verdict
		kind, says    string
		there         bool
	}{
		{"answered", "node-18", nil, nil, "written", "is paused", true},
		{"done, and cut", "node-19", nil, func() lab.Verdict { return lab.Reset }, "written", "The API server's answer was lost; the node was read again and shows the change.", true},
		{"done, and unavailable", "node-20", nil, func() lab.Verdict { return lab.Unavailable }, "written", "The API server's answer was lost; the node was read again and shows the change.", true},
		{"done, and late", "node-21", nil, func() lab.Verdict { <-late; return lab.Pass }, "written", "The API server's answer was lost; the node was read again and shows the change.", true},
		{"cut before it was done", "node-22", func() lab.Verdict { return lab.Reset }, nil, "unknown", "it is unknown whether the change was written", false},
		{"refused", "node-23", func() lab.Verdict { return lab.Forbidden }, nil, "refused", "was refused", false},
	} {
		c.open(at, p, "/nodes/"+f.node)
		await(t, at, "the header names the cluster", `document.getElementById("cluster").innerText.includes("lab") && `+shows(proxy.URL()))
		c.say(at, "pause", map[string]string{"why": "disk"})
		var writes atomic.Int32
		proxy.Before(func(r *http.Request) lab.Verdict {
			if !write(r) {
				return lab.Pass
			}
			writes.Add(1)
			if f.before != nil {
				return f.before()
			}
			return lab.Pass
		})
		proxy.After(func(res *http.Response) lab.Verdict {
			if f.after != nil && write(res.Request) {
				return f.after()
			}
			return lab.Pass
		})
		c.write(at, "pause")
		kind, said := outcome(t, at, "pause")
		require.Equal(t, f.kind, kind, "%s: %s", f.name, said)
		require.Contains(t, said, f.says, f.name)
		require.True(t, strings.HasPrefix(said, cluster), said)
		require.EqualValues(t, 1, writes.Load(), "%s: one asking is one write", f.name)
		proxy.Before(nil)
		proxy.After(nil)
		_, there := c.node(f.node).Annotations[remediations.PauseKey]
		require.Equal(t, f.there, there, f.name)
	}
}

// The page's program ends after the click, before it has answered. Then it is unknown whether the
// write was done. The control: if the write was not sent, nothing was written.
func TestAWriteWhosePageEndsIsNotKnown(t *testing.T) {
	for _, f := range []struct {
		name       string
		tries      bool // whether the dry run is the last request that it answers
		kind, says string
	}{
		{"after the dry run", true, "unknown", "kubectl drydock ui did not answer. It is unknown whether the change was written: check the node before you try again."},
		{"before the dry run", false, "refused", "kubectl drydock ui did not answer. Nothing was written."},
	} {
		t.Run(f.name, func(t *testing.T) {
			c := newCluster(t)
			proxy, err := c.lab.NewProxy()
			require.NoError(t, err)
			p := c.ui(c.account("patches", strings.Replace(readsAll, "verbs: [get, list, watch]", "verbs: [get, list, watch, patch]", 1), proxy.URL()))
			at := tab(t)
			c.open(at, p, "/nodes/node-17")
			await(t, at, "the header names the cluster", `document.getElementById("cluster").innerText.includes("lab") && `+shows(proxy.URL()))
			if f.tries {
				c.say(at, "pause", map[string]string{"why": "disk"})
			}
			asked := make(chan struct{}, 10)
			proxy.Before(func(r *http.Request) lab.Verdict {
				if r.Method != http.MethodPatch {
					return lab.Pass
				}
				asked <- struct{}{}
				<-r.Context().Done()
				return lab.Reset
			})
			t.Cleanup(func() { proxy.Before(nil) })
			if f.tries {
				c.write(at, "pause")
			} else {
				c.try(at, "pause", map[string]string{"why": "disk"})
			}
			<-asked
			p.Stop()
			const place = `document.querySelector("#word-pause .outcome")`
			await(t, at, f.name, place+`.dataset.kind === "`+f.kind+`"`)
			said, err := browser.Eval[string](t.Context(), at, place+".innerText")
			require.NoError(t, err)
			require.Equal(t, "Cluster lab ("+proxy.URL()+"): "+f.says, said)
			require.NotContains(t, c.node("node-17").Annotations, remediations.PauseKey)
		})
	}
}

// A browser repeats a write by itself if the connection ended without an answer. The write is done
// once: a pause that a colleague ended in between stays ended. The control is the repeated request.
func TestAWriteThatTheBrowserRepeatsIsWrittenOnce(t *testing.T) {
	const node = "node-17"
	c := newCluster(t)
	proxy, err := c.lab.NewProxy()
	require.NoError(t, err)
	p := c.ui(c.account("patches", strings.Replace(readsAll, "verbs: [get, list, watch]", "verbs: [get, list, watch, patch]", 1), proxy.URL()))
	var writes, posts atomic.Int32
	proxy.Before(func(r *http.Request) lab.Verdict {
		if r.Method == http.MethodPatch && !r.URL.Query().Has("dryRun") {
			writes.Add(1)
		}
		return lab.Pass
	})
	t.Cleanup(func() { proxy.Before(nil) })
	at := tab(t)
	written, ended := make(chan struct{}), make(chan struct{})
	c.openBy(at, p, relay(t, p, func(w http.ResponseWriter, _ *http.Request, answer func()) {
		if posts.Add(1) > 1 {
			answer()
			return
		}
		close(written)
		<-ended
		cut(t, w)
	}))
	c.open(at, p, "/nodes/"+node)
	c.say(at, "pause", map[string]string{"why": "disk"})
	c.write(at, "pause")
	<-written
	c.annotated(node, remediations.PauseKey, true)
	c.patch(node, map[string]any{remediations.PauseKey: nil}, nil) // a colleague ends the pause
	close(ended)
	kind, said := outcome(t, at, "pause")
	require.Equal(t, "written", kind, said)
	require.EqualValues(t, 2, posts.Load(), "the browser repeated it")
	require.EqualValues(t, 1, writes.Load())
	require.NotContains(t, c.node(node).Annotations, remediations.PauseKey)
}

// If the page's program receives the write and never answers, the page stops waiting, and says that
// the result is unknown.
func TestAPageStopsWaitingForAWrite(t *testing.T) {
	const node = "node-17"
	c := newCluster(t)
	p := c.ui("")
	at := tab(t)
	c.openBy(at, p, relay(t, p, func(_ http.ResponseWriter, r *http.Request, _ func()) { <-r.Context().Done() }))
	c.open(at, p, "/nodes/"+node)
	c.say(at, "pause", map[string]string{"why": "disk"})
	_, err := browser.Eval[bool](t.Context(), at, `(real => { AbortSignal.timeout = (ms) => real.call(AbortSignal, ms / 50); return true })(AbortSignal.timeout)`)
	require.NoError(t, err)
	c.write(at, "pause")
	kind, said := outcome(t, at, "pause")
	require.Equal(t, "unknown", kind, said)
	require.True(t, strings.HasSuffix(said, "kubectl drydock ui did not answer. It is unknown whether the change was written: check the node before you try again."), said)
	c.annotated(node, remediations.PauseKey, true)
}

// A reset is for the repair that was tried. If another repair is exhausted when the reset is
// written, nothing is written, whether the form names the repair or not. The control: a new try is
// about the new repair, and works.
func TestAResetIsOfTheRepairThatWasTried(t *testing.T) {
	const node = "node-17"
	c := newCluster(t)
	p := c.ui("")
	at := tab(t)
	for _, f := range []struct {
		name, id, says string
	}{
		{"the form names it", idOf(node), "there is no exhausted repair " + idOf(node) + " on " + node + "; a reset would delete bbbbbb"},
		{"the form does not", "", "would now concern bbbbbb instead of " + idOf(node)},
	} {
		c.record(node, remediations.PhaseExhausted, nil)
		c.open(at, p, "/nodes/"+node)
		c.try(at, "reset", nil)
		await(t, at, "the try", `document.querySelector("#word-reset [data-do=write]").disabled === false`)
		if f.id == "" {
			_, err := browser.Eval[bool](t.Context(), at, `(f => { f.value = ""; f.dispatchEvent(new Event("input", {bubbles: true})); return true })(document.querySelector("#reset-id"))`)
			require.NoError(t, err)
			require.NoError(t, at.Click(t.Context(), "#word-reset [data-do=try]"))
			await(t, at, "the try", `document.querySelector("#word-reset [data-do=write]").disabled === false`)
		}
		c.record(node, remediations.PhaseExhausted, func(r *remediations.Record) { r.ID, r.Intent.ID = "bbbbbb", "bbbbbb-0-1" })
		c.write(at, "reset")
		kind, said := outcome(t, at, "reset")
		require.Equal(t, "refused", kind, "%s: %s", f.name, said)
		require.Contains(t, said, f.says, f.name)
		require.NotContains(t, c.node(node).Annotations, remediations.ResetKey, f.name)

		c.open(at, p, "/nodes/"+node)
		c.say(at, "reset", nil)
		c.write(at, "reset")
		c.annotated(node, remediations.ResetKey, true)
		c.settle()
	}
}

// outcome waits until the dialog shows how a write ended.
func outcome(t *testing.T, at *browser.Tab, word string) (kind, said string) {
	t.Helper()
	place := `document.querySelector("#word-` + word + ` .outcome")`
	await(t, at, "how the write ended", `["written", "refused", "unknown"].includes(`+place+`.dataset.kind)`)
	kind, err := browser.Eval[string](t.Context(), at, place+".dataset.kind")
	require.NoError(t, err)
	said, err = browser.Eval[string](t.Context(), at, place+".innerText")
	require.NoError(t, err)
	return kind, said
}

// relay stands between the browser and the page. It passes each write that the page has answered to
// then, together with the answer.
func relay(t *testing.T, p *lab.Page, then func(w http.ResponseWriter, r *http.Request, answer func())) (origin string) {
	t.Helper()
	page, err := url.Parse(p.Origin)
	require.NoError(t, err)
	through := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(page)
		if r.In.Header.Get("Origin") != "" {
			r.Out.Header.Set("Origin", p.Origin)
		}
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if r.Method != http.MethodPost || !bytes.Contains(body, []byte(`"click"`)) {
			through.ServeHTTP(w, r)
			return
		}
		answered := httptest.NewRecorder()
		through.ServeHTTP(answered, r)
		then(w, r, func() {
			maps.Copy(w.Header(), answered.Header())
			w.WriteHeader(answered.Code)
			_, _ = w.Write(answered.Body.Bytes())
		})
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// cut ends the connection without an answer.
func cut(t *testing.T, w http.ResponseWriter) {
	t.Helper()
	hijacker, is := w.(http.Hijacker)
	if !is {
		t.Error("the connection cannot be taken over")
		return
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_ = conn.Close()
}

// openBy opens the page through the relay at origin. Everything that the tab opens afterwards also
// goes through the relay.
func (c *cluster) openBy(at *browser.Tab, p *lab.Page, origin string) {
	c.t.Helper()
	address, err := p.Fresh(c.t.Context())
	require.NoError(c.t, err)
	require.NoError(c.t, at.Open(c.t.Context(), strings.Replace(address, p.Origin, origin, 1)))
	root, err := browser.Eval[string](c.t.Context(), at, `location.origin + location.pathname`)
	require.NoError(c.t, err)
	c.entered[at], c.roots[p] = p, strings.TrimSuffix(root, "/")
}
