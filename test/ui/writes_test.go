package ui

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/browser"
	"drydock.dev/drydock/remediations"
)

// A write whose answer is late, lost or cut is shown as what it is, with the cluster, and is sent once.
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
		// before and after are what happens to the write and to its answer.
		before, after func() lab.Verdict
		kind, says    string
		there         bool
	}{
		{"answered", "node-18", nil, nil, "written", "is paused", true},
		{"done, and cut", "node-19", nil, func() lab.Verdict { return lab.Reset }, "written", "The API server's answer was lost; the node was read again and shows it.", true},
		{"done, and unavailable", "node-20", nil, func() lab.Verdict { return lab.Unavailable }, "written", "The API server's answer was lost; the node was read again and shows it.", true},
		{"done, and late", "node-21", nil, func() lab.Verdict { <-late; return lab.Pass }, "written", "The API server's answer was lost; the node was read again and shows it.", true},
		{"cut before it was done", "node-22", func() lab.Verdict { return lab.Reset }, nil, "unknown", "not known whether it was written", false},
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
		const place = `document.querySelector("#word-pause .outcome")`
		await(t, at, f.name, `["written", "refused", "unknown"].includes(`+place+`.dataset.kind)`)
		kind, err := browser.Eval[string](t.Context(), at, place+".dataset.kind")
		require.NoError(t, err)
		said, err := browser.Eval[string](t.Context(), at, place+".innerText")
		require.NoError(t, err)
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

// The page's own program ends after the click, before it has answered: nobody knows whether the write was done. Without a write, nothing was
// written, which is the control.
func TestAWriteWhosePageEndsIsNotKnown(t *testing.T) {
	for _, f := range []struct {
		name       string
		tries      bool // the dry run is the last that it answers
		kind, says string
	}{
		{"after the dry run", true, "unknown", "kubectl drydock ui did not answer. Not known whether it was written: look at the node before you try again."},
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
			require.Equal(t, "In cluster lab ("+proxy.URL()+"): "+f.says, said)
			require.NotContains(t, c.node("node-17").Annotations, remediations.PauseKey)
		})
	}
}
