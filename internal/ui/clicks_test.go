package ui

import (
	"errors"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
)

// patched counts the writes to Nodes without the dry runs.
func (d *desk) patched() *atomic.Int64 {
	var count atomic.Int64
	d.react("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if p, is := a.(clienttesting.PatchActionImpl); is && len(p.PatchOptions.DryRun) == 0 {
			count.Add(1)
		}
		return false, nil, nil
	})
	return &count
}

func (d *desk) tried(node, word, params string) (click string) {
	d.t.Helper()
	code, said := d.say(node, word, `{"params":{`+params+`},"dryRun":true}`)
	require.Equal(d.t, http.StatusOK, code, said)
	click, _ = said["click"].(string)
	require.NotEmpty(d.t, click)
	return click
}

// TestAClickIsTakenOnce: a browser may send it again by itself when a connection ends, and then
// gets the first outcome. What a person ended meanwhile stays ended. Another try is the control.
func TestAClickIsTakenOnce(t *testing.T) {
	t.Parallel()
	d := open(t, append(installed(), node("n"))...)
	d.allow()
	d.honest()
	count := d.patched()
	const why = `"why":"now"`
	body := `{"params":{` + why + `},"click":"` + d.tried("n", "break-glass", why) + `"}`
	code, first := d.say("n", "break-glass", body)
	require.Equal(t, http.StatusOK, code, first)
	require.Contains(t, d.annotations("n"), remediations.BreakGlassKey)

	code, _ = d.write("n", "resume", "")
	require.Equal(t, http.StatusOK, code)
	code, again := d.say("n", "break-glass", body)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, first, again)
	require.NotContains(t, d.annotations("n"), remediations.BreakGlassKey, "a colleague ended it")
	require.EqualValues(t, 2, count.Load())

	code, _ = d.write("n", "break-glass", why)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, d.annotations("n"), remediations.BreakGlassKey)
}

// TestAClickThatIsUnderWayIsNotWrittenAgain: the second request waits for the first one's outcome.
func TestAClickThatIsUnderWayIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	d := open(t, append(installed(), node("n"))...)
	d.allow()
	d.honest()
	body := `{"params":{},"click":"` + d.tried("n", "pause", "") + `"}`
	arrived, goOn := make(chan struct{}, 2), make(chan struct{})
	d.react("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		arrived <- struct{}{}
		<-goOn
		return false, nil, nil
	})
	codes := make(chan int, 2)
	ask := func() { code, _ := d.say("n", "pause", body); codes <- code }
	go ask()
	<-arrived
	go ask()
	close(goOn)
	require.Equal(t, http.StatusOK, <-codes)
	require.Equal(t, http.StatusOK, <-codes)
	require.Empty(t, arrived)
}

// TestAClickNeedsTheSubjectOfItsDryRun, and for nothing else.
func TestAClickNeedsTheSubjectOfItsDryRun(t *testing.T) {
	t.Parallel()
	d := open(t, append(installed(), node("n", withRecord("aaaaaa", remediations.PhaseExhausted), func(n *corev1.Node) { n.UID = "u1" }), node("m"))...)
	d.allow()
	d.honest()
	count := d.patched()
	for name, body := range map[string][3]string{
		"no number":        {"n", "pause", `{"params":{}}`},
		"a guessed number": {"n", "pause", `{"params":{},"click":"1"}`},
		"other parameters": {"n", "pause", `{"params":{"why":"other"},"click":"` + d.tried("n", "pause", "") + `"}`},
		"another node":     {"m", "pause", `{"params":{},"click":"` + d.tried("n", "pause", "") + `"}`},
		"another word":     {"n", "resume", `{"params":{},"click":"` + d.tried("n", "pause", "") + `"}`},
	} {
		code, said := d.say(body[0], body[1], body[2])
		require.Equal(t, http.StatusConflict, code, name)
		require.Contains(t, said["problem"], "Nothing was written: this change was not tried first, or too long ago. Try it again.", name)
	}

	// The repair of the try is gone; another one is exhausted.
	reset := `{"params":{},"click":"` + d.tried("n", "reset", "") + `"}`
	again := `{"params":{},"click":"` + d.tried("n", "reset", "") + `"}`
	put := func(n *corev1.Node) {
		require.NoError(t, d.cluster.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""))
	}
	put(node("n", withRecord("bbbbbb", remediations.PhaseExhausted), func(n *corev1.Node) { n.UID = "u1" }))
	code, said := d.say("n", "reset", reset)
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, said["problem"], "the command would now concern bbbbbb instead of aaaaaa")
	put(node("n", withRecord("aaaaaa", remediations.PhaseExhausted), func(n *corev1.Node) { n.UID = types.UID("u2") }))
	code, said = d.say("n", "reset", again)
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, said["problem"], "nothing was written, because node n was deleted and registered again")
	require.Zero(t, count.Load())

	code, said = d.write("n", "reset", "")
	require.Equal(t, http.StatusOK, code, said)
	require.EqualValues(t, 1, count.Load())
}

// TestAnOldClickWritesNothing: neither an expired one, nor one that newer ones replaced.
func TestAnOldClickWritesNothing(t *testing.T) {
	t.Parallel()
	var c clicks
	first := c.offer(&click{node: "n", word: "pause", at: now})
	of, is := c.take(first, "n", "pause", nil, now.Add(clickLasts+time.Second))
	require.Nil(t, of)
	require.False(t, is)
	of, is = c.take(first, "n", "pause", nil, now.Add(clickLasts))
	require.NotNil(t, of)
	require.True(t, is)
	for range maxClicks {
		c.offer(&click{at: now})
	}
	of, _ = c.take(first, "n", "pause", nil, now)
	require.Nil(t, of)
	require.Len(t, c.all, maxClicks)
}

// TestALostAnswerIsReportedAsLost: written if the Node has it, otherwise unknown.
func TestALostAnswerIsReportedAsLost(t *testing.T) {
	t.Parallel()
	for _, done := range []bool{true, false} {
		d := open(t, append(installed(), node("n"))...)
		d.allow()
		d.react("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if done {
				n := node("n", annotated(remediations.PauseKey, "true"))
				require.NoError(t, d.cluster.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""))
			}
			return true, nil, apierrors.NewServiceUnavailable("the connection was lost")
		})
		d.honest()
		code, said := d.write("n", "pause", "")
		if done {
			require.Equal(t, http.StatusOK, code, said)
			require.Contains(t, said["said"], "n is paused")
			require.Contains(t, said["said"], "The API server's answer was lost; the node was read again and shows the change.")
			continue
		}
		require.Equal(t, http.StatusGatewayTimeout, code)
		require.Equal(t, true, said["unknown"])
		require.Contains(t, said["problem"], "it is unknown whether the change was written")
	}
}

// TestEachDeadlineIsShorterThanTheNext, so that no browser repeats a write by itself.
func TestEachDeadlineIsShorterThanTheNext(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("static/words.js")
	require.NoError(t, err)
	found := regexp.MustCompile(`const waits = (\d+)_(\d+);`).FindStringSubmatch(string(script))
	require.NotNil(t, found)
	ms, err := strconv.Atoi(found[1] + found[2])
	require.NoError(t, err)
	require.Less(t, actions.ServerWithin, actions.AnswerWithin)
	require.Less(t, actions.AnswerWithin, writeWithin)
	require.Less(t, writeWithin+5*time.Second, time.Duration(ms)*time.Millisecond, "the Node is read again, too")
	require.Less(t, time.Duration(ms)*time.Millisecond, limits.Write)
}

// TestThePageNamesItsCluster in its header, in its dialogs, in every outcome, and in the commands
// that it shows.
func TestThePageNamesItsCluster(t *testing.T) {
	t.Parallel()
	prod := func(o *Options) {
		o.Reader.Cluster = inspect.NewCluster("it's <prod>", "https://10.0.0.1:6443")
		o.Commands = inspect.Commands{Kubectl: []string{"--context", "it's <prod>"}, Plugin: map[string][]string{"pause": nil, "reset": nil, "why": nil, "status": nil, "resume": nil}}
	}
	d := openBy(t, prod, nil, append(installed(), node("n", withRecord("aaaaaa", remediations.PhaseExhausted)))...)
	d.allow()
	d.honest()
	const name = "Cluster it's <prod> (https://10.0.0.1:6443): "
	html := d.get("/nodes/n")
	require.Regexp(t, `<span id="cluster"[^>]*><b><bdi>it&#39;s &lt;prod&gt;</bdi></b> <small>https://10.0.0.1:6443</small>`, html)
	require.Contains(t, html, `<p id="word-pause-cluster" class="cluster">Cluster <b><bdi>it&#39;s &lt;prod&gt; (https://10.0.0.1:6443)</bdi></b></p>`)
	require.Contains(t, d.get("/"), `<span id="cluster"`)
	require.Contains(t, d.get("/report"), "Cluster it&#39;s &lt;prod&gt; (https://10.0.0.1:6443): ")
	const flags = `--context &#39;it&#39;\&#39;&#39;s &lt;prod&gt;&#39;`
	require.Contains(t, html, "kubectl drydock "+flags+" reset n")
	require.NotContains(t, html, "kubectl drydock reset")
	require.Contains(t, d.facts("/nodes/n/words/pause?for=2h")["command"], `kubectl drydock --context 'it'\''s <prod>' pause n --for 2h`)

	code, said := d.write("n", "pause", "")
	require.Equal(t, http.StatusOK, code, said)
	require.Contains(t, said["said"], name+"n is paused until `kubectl drydock --context")
	_, said = d.say("n", "pause", `{"params":{}}`)
	require.Contains(t, said["problem"], name+"Nothing was written")
	d.react("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no") })
	_, said = d.say("n", "pause", `{"dryRun":true}`)
	require.Contains(t, said["problem"], name)
	d.allow("patch")
	_, said = d.say("n", "pause", `{"dryRun":true}`)
	require.Contains(t, said["problem"], name+"Nothing was written: you lack")
	for _, c := range []struct {
		word, body string
		code       int
		says       string
	}{
		{"dance", `{}`, http.StatusNotFound, "There is no such action"},
		{"pause", `{"more":1}`, http.StatusBadRequest, "The request's body is not valid"},
		{"pause", `{} {}`, http.StatusBadRequest, "The request's body has more than one JSON value"},
		{"pause", `{"params":{"for":"soon"}}`, http.StatusUnprocessableEntity, "--for is"},
	} {
		code, said = d.say("n", c.word, c.body)
		require.Equal(t, c.code, code, said)
		require.Contains(t, said["problem"], name+c.says)
	}
	d = openBy(t, func(o *Options) { prod(o); o.ReadOnly = true }, nil, append(installed(), node("n"))...)
	code, said = d.say("n", "pause", `{}`)
	require.Equal(t, http.StatusForbidden, code)
	require.Contains(t, said["problem"], name+"The page was started with --read-only")
}
