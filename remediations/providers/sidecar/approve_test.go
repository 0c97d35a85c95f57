package sidecar

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/sidecar/settings"
	kind "drydock.dev/drydock/remediations/targets/sidecar"
)

func TestAPodThatWasReplacedIsNotApproved(t *testing.T) {
	for name, tc := range map[string]struct {
		now  func(*corev1.Pod) // changes the pod before the approval
		asks func(*engine.Approval)
		text string
	}{
		"another UID":       {now: func(p *corev1.Pod) { p.UID = "uid-2" }, text: "replaced by another one with the UID uid-2"},
		"another node":      {now: func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }, text: `the pod is now on node "node-2"`},
		"being deleted":     {now: func(p *corev1.Pod) { p.DeletionTimestamp = &p.CreationTimestamp }, text: "is being deleted"},
		"not selected":      {now: func(p *corev1.Pod) { p.Labels = nil }, text: "does not select pod"},
		"asked without UID": {asks: func(a *engine.Approval) { a.Pod.UID = "" }, text: "the pod was replaced by another one"},
		"asked for node":    {asks: func(a *engine.Approval) { a.Node = "" }, text: "the pod is now on node"},
	} {
		t.Run(name, func(t *testing.T) {
			s := closed(t)
			require.Equal(t, kind.HealthNotReady, s.look(t).Health)
			asked := asking()
			if tc.asks != nil {
				tc.asks(&asked)
			}
			if tc.now != nil {
				pod := seiPod(t, s.g)
				tc.now(pod)
				require.NoError(t, s.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, namespace))
			}
			err := s.Approve(t.Context(), asked, yes)
			requireRefused(t, err, reasonChanged, "approving the sidecar of pod pacific-1/rpc-1-0", tc.text)
			var refused *refusedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, options().Now(), refused.Saw.At)
			require.Empty(t, s.g.Posts())
		})
	}
	s := closed(t)
	require.NoError(t, s.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), namespace, thePod.Name))
	requireRefused(t, s.approve(t), reasonChanged, "the pod no longer exists")
	require.Empty(t, s.g.Probes())
}

func TestAnApprovalLooksOnceMoreAndProbesItself(t *testing.T) {
	s := closed(t)
	require.Equal(t, kind.HealthNotReady, s.look(t).Health)
	s.g.mu.Lock()
	s.g.open = true
	s.g.mu.Unlock()
	requireRefused(t, s.approve(t), reasonChanged, "does not wait for an approval (Ready)")
	require.Empty(t, s.g.Posts())
	require.Len(t, s.g.Probes(), 2)
}

func TestTheCallersLastWordComesAfterTheConnectionAndBeforeTheRequest(t *testing.T) {
	no := errors.New("another replica leads")
	for _, via := range []string{settings.ViaHTTP, settings.ViaSeiNodeTask} {
		t.Run(via, func(t *testing.T) {
			var connected sync.Map
			g := newGated(t, func(s *httptest.Server) {
				s.Config.ConnState = func(c net.Conn, state http.ConnState) { connected.Store(c.RemoteAddr().String(), state) }
			})
			asked, tokens := 0, 0
			s := newScene(t, g, seiPod(t, g), seiNode(), func(o *Options) {
				o.Via = via
				o.Token = func(context.Context) (string, error) { tokens++; return token, nil }
			})
			err := s.Approve(t.Context(), asking(), func() error {
				asked++
				require.Len(t, g.Probes(), 1, "it has looked")
				require.Equal(t, via == settings.ViaHTTP, tokens == 1)
				return no
			})
			requireRefused(t, err, reasonWithheld, "another replica leads")
			require.ErrorIs(t, err, no)
			require.Equal(t, 1, asked)
			require.Empty(t, g.Posts())
			require.Empty(t, s.tasks(t))
			if via == settings.ViaHTTP {
				require.Eventually(t, func() bool { return length(&connected) == 2 }, time.Minute, time.Millisecond, "the connection was there")
			}

			requireRefused(t, s.Approve(t.Context(), asking(), nil), reasonWithheld)
			ctx, cancel := context.WithCancel(t.Context())
			err = s.Approve(ctx, asking(), func() error { cancel(); return nil })
			requireRefused(t, err, reasonWithheld)
			require.ErrorIs(t, err, context.Canceled)
			require.Empty(t, g.Posts())
			require.Empty(t, s.tasks(t))
		})
	}
}

func length(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

func TestOnlyCertainOutcomesAreReported(t *testing.T) {
	for name, tc := range map[string]struct {
		answer  func(http.ResponseWriter, *http.Request) bool
		refused reason // empty: perhaps
		text    string
	}{
		"400":                {to(400, `{"error":"unknown task type"}`), reasonRejected, "the sidecar answered 400: unknown task type"},
		"400 with a page":    {to(400, "<html>\n<b>no"), reasonRejected, "the sidecar answered 400: <html> <b>no"},
		"400 with a message": {to(400, `{"message":"no"}`), reasonRejected, "the sidecar answered 400: no"},
		"400 of null":        {to(400, "null"), reasonRejected, "the sidecar answered 400: null"},
		"404 without a word": {to(404, ""), reasonRejected, "the sidecar answered 404"},
		"409":                {to(409, "busy"), reasonRejected, "the sidecar answered 409: busy"},
		"429":                {to(429, "slow down"), reasonRejected, "the sidecar answered 429: slow down"},
		"500":                {to(500, `{"error":"disk full"}`), "", "the sidecar answered 500: disk full"},
		"502":                {to(502, "bad gateway"), "", "the sidecar answered 502"},
		"503":                {to(503, ""), "", "the sidecar answered 503"},
		"another 2xx":        {to(204, ""), "", "the sidecar answered 204"},
		"302":                {to(302, ""), "", "the sidecar answered 302"},
		"torn":               {onPost(raw("")), "", "no answer came from"},
		"garbage":            {onPost(raw("garbage\r\n\r\n")), "", "malformed"},
		"torn within":        {onPost(raw("HTTP/1.1 2")), "", "no answer came from"},
	} {
		t.Run(name, func(t *testing.T) {
			s := closed(t)
			s.g.answer(tc.answer)
			err := s.approve(t)
			if tc.refused != "" {
				requireRefused(t, err, tc.refused, tc.text)
			} else {
				requirePerhaps(t, err, tc.text)
			}
			require.Len(t, s.g.Posts(), 1, "whatever comes back, it is asked once")
		})
	}
}

func onPost(answer func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool { return r.Method != http.MethodGet && answer(w, r) }
}

func TestAnApprovalThatHangsMayHaveArrived(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	defer close(released)
	s := closed(t, func(o *Options) { o.ApproveTimeout = 5 * time.Second })
	t.Cleanup(s.g.CloseClientConnections)
	s.g.answer(onPost(func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-released:
		case <-r.Context().Done():
		}
		return true
	}))
	err := s.approve(t)
	requirePerhaps(t, err, "no answer came from")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestARefusedConnectionIsCertain has a sidecar that dies right after its probe.
func TestARefusedConnectionIsCertain(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		_ = l.Close()
		_, _ = fmt.Fprint(conn, "HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n")
		_ = conn.Close()
	}()
	g := newGated(t)
	pod := seiPod(t, g)
	pod.Spec.InitContainers[1].Ports[0].ContainerPort = int32(l.Addr().(*net.TCPAddr).Port)
	s := newScene(t, g, pod, seiNode())
	err = s.Approve(t.Context(), asking(), func() error { t.Error("there is nothing to ask about"); return nil })
	requireRefused(t, err, reasonFailed, "there is no connection to 127.0.0.1:")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// proxied is the sidecar behind a proxy that checks tokens: 401 for unknown tokens, 403 if the
// right is missing.
func proxied(tokens map[string]bool) func(http.ResponseWriter, *http.Request) bool {
	return onPost(func(w http.ResponseWriter, r *http.Request) bool {
		allowed, known := tokens[r.Header.Get("Authorization")]
		switch {
		case !known:
			http.Error(w, "Unauthorized "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		case !allowed:
			http.Error(w, "Forbidden", http.StatusForbidden)
		}
		return !known || !allowed
	})
}

func TestTheProxysRefusalsNameTheRightThatIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		token     string
		texts     []string
		noSeiNode bool // the pod has no SeiNode
	}{
		"no token":     {texts: []string{"the sidecar answered 401", "it requires a token, but the sidecar provider sei has none; configure auth"}},
		"unknown":      {token: "nobodys", texts: []string{"the sidecar answered 401", "it rejects the token", "create seinodetasks.sei.io with the name rpc-1"}},
		"no right":     {token: "weak", texts: []string{"the sidecar answered 403: Forbidden", "lacks the right that the pod's proxy requires: create seinodetasks.sei.io with the name rpc-1 in namespace pacific-1"}},
		"no SeiNode":   {token: "weak", noSeiNode: true, texts: []string{"the sidecar answered 403", "lacks the right that the pod's proxy requires"}},
		"with a right": {token: token},
	} {
		t.Run(name, func(t *testing.T) {
			s := closed(t, func(o *Options) {
				if tc.token != "" {
					o.Token = func(context.Context) (string, error) { return " " + tc.token + "\n", nil }
				}
				if tc.noSeiNode {
					o.Owner = ""
				}
			})
			s.g.answer(proxied(map[string]bool{"Bearer " + token: true, "Bearer weak": false}))
			err := s.approve(t)
			if tc.texts == nil {
				require.NoError(t, err)
				return
			}
			requireRefused(t, err, reasonUnauthorized, tc.texts...)
			if tc.token == "nobodys" {
				require.NotContains(t, err.Error(), "nobodys")
			}
			require.Len(t, s.g.Posts(), 1)
		})
	}
}

func TestTheTokenLeavesWithTheApprovalAlone(t *testing.T) {
	asked := 0
	s := closed(t, func(o *Options) { o.Token = func(context.Context) (string, error) { asked++; return token, nil } })
	s.look(t)
	require.Zero(t, asked)
	require.NoError(t, s.approve(t))
	require.Equal(t, 1, asked)
	s.look(t)
	for _, r := range s.g.Probes() {
		require.Empty(t, r.Header["Authorization"])
	}
	sent := s.g.Posts()[0]
	require.Equal(t, "Bearer "+token, sent.Header.Get("Authorization"))
	for _, header := range []string{"X-Remote-User", "X-Remote-Group", "X-Forwarded-For", "Cookie"} {
		require.Empty(t, sent.Header[header], "the proxy alone says who is asking")
	}

	// No token is sent for a pod that must not be approved.
	s.g.restart()
	require.NoError(t, s.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), replaced(t, s.g), namespace))
	requireRefused(t, s.approve(t), reasonChanged)
	require.Equal(t, 1, asked)
}

func replaced(t *testing.T, g *gated) *corev1.Pod {
	pod := seiPod(t, g)
	pod.UID = types.UID("uid-2")
	return pod
}

func TestWithoutAUsableTokenNothingLeaves(t *testing.T) {
	gone := errors.New("the file is\ngone" + strings.Repeat("!", 2000))
	for name, give := range map[string]func() (string, error){
		"error":     func() (string, error) { return token, gone },
		"empty":     func() (string, error) { return " \n", nil },
		"two lines": func() (string, error) { return token + "\nX-Remote-User: admin", nil },
		"a control": func() (string, error) { return token + "\x7f", nil },
		"not ASCII": func() (string, error) { return token + "é", nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := closed(t, func(o *Options) { o.Token = func(context.Context) (string, error) { return give() } })
			err := s.approve(t)
			requireRefused(t, err, reasonUnauthorized, "the token cannot be read")
			require.Equal(t, name == "error", errors.Is(err, gone))
			require.Empty(t, s.g.Posts())
		})
	}
}

func TestNoTextHasTheToken(t *testing.T) {
	s := closed(t, func(o *Options) { o.Token = func(context.Context) (string, error) { return token, nil } })
	echo := fmt.Sprintf(`{"error":"%s"}`, "bearer "+token)
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"JSON":          to(400, echo),
		"500":           to(500, echo),
		"401":           to(401, token),
		"page":          to(403, "<p>bearer eyJhbGciOiJSUzI1NiJ9.correct/horse+battery=staple&amp;&lt;x&gt;.c2lnbmF0dXJl"),
		"escaped":       to(400, `{"error":"eyJhbGciOiJSUzI1NiJ9.correct\/horse+battery=staple\u0026\u003cx\u003e.c2lnbmF0dXJl"}`),
		"escaped, torn": to(400, `{"error":"eyJhbGciOiJSUzI1NiJ9.correct/horse+battery=staple\u0026\u003cx\u003e.c2lnbmF0dXJl`),
		"in a URL":      to(400, "/?t=eyJhbGciOiJSUzI1NiJ9.correct%2Fhorse%2Bbattery%3Dstaple%26%3Cx%3E.c2lnbmF0dXJl"),
		"in a path":     to(400, "/eyJhbGciOiJSUzI1NiJ9.correct%2Fhorse+battery=staple&%3Cx%3E.c2lnbmF0dXJl"),
		"cut off":       to(400, strings.Repeat(token, 2)+strings.Repeat("\x00", maxAnswer-3*len(token)+9)+token),
		"cut":           to(400, fmt.Sprintf("%190s%s", "", token)),
		"broken header": onPost(raw("HTTP/1.1 200 OK\r\n" + token + "\r\n\r\n")),
		"broken status": onPost(raw(token + "\r\n\r\n")),
	} {
		t.Run(name, func(t *testing.T) {
			s.g.answer(answer)
			err := s.approve(t)
			require.Error(t, err)
			for ; err != nil; err = errors.Unwrap(err) {
				for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err)} {
					require.NotContains(t, text, "battery")
					require.NotContains(t, text, "c2lnbmF0dXJl")
				}
			}
			// The sidecar can repeat what it received at any time.
			s.g.answer(func(w http.ResponseWriter, _ *http.Request) bool { http.Error(w, token, 500); return true })
			require.NotContains(t, fmt.Sprintf("%+v", s.look(t)), "battery")
		})
	}
}

func TestOtherSidecarsAreReachedAsConfigured(t *testing.T) {
	g := newGated(t)
	var got post
	g.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/-/healthy" {
			w.WriteHeader(425)
			return true
		}
		got = post{Request: r}
		w.WriteHeader(418)
		return true
	})
	pod := seiPod(t, g)
	s := newScene(t, g, pod, nil, func(o *Options) {
		o.Owner, o.Dynamic = "", nil
		o.HealthPath, o.ReadyCode, o.NotReadyCode = "/-/healthy", 204, 425
		o.ApproveMethod, o.ApprovePath, o.ApproveBody, o.ApproveCodes = "PUT", "/-/go?by=drydock", "go {id} {id}", []int{418}
	})
	require.Equal(t, kind.HealthNotReady, s.look(t).Health)
	id := newID()
	require.NoError(t, s.approveAs(t, id))
	require.Equal(t, "PUT /-/go?by=drydock", got.Method+" "+got.RequestURI)
	require.Equal(t, "go "+id+" "+id, g.Posts()[0].body)
	require.Empty(t, got.Header.Get("Content-Type"))
}
