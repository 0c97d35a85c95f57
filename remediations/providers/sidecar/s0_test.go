package sidecar

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	kind "drydock.dev/drydock/remediations/targets/sidecar"
)

func TestS0_1AReplacedPodWaitsUntilItIsApproved(t *testing.T) {
	s := closed(t)
	require.NoError(t, s.approve(t))
	require.Equal(t, kind.HealthReady, s.look(t).Health)

	s.g.restart()
	require.Equal(t, kind.HealthNotReady, s.look(t).Health)
	require.Equal(t, kind.HealthNotReady, s.look(t).Health, "looking opens no gate")
	require.NoError(t, s.approve(t))
	require.Equal(t, kind.HealthReady, s.look(t).Health)
	require.Len(t, s.g.Posts(), 2)
}

func TestS0_1To4OnlyA503OfARunningNodeIsApprovedAndOnlyOnce(t *testing.T) {
	answers := map[string]func(http.ResponseWriter, *http.Request) bool{"hang up": func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			panic(http.ErrAbortHandler)
		}
		return false
	}}
	for _, code := range []int{200, 201, 204, 302, 400, 401, 403, 404, 408, 429, 500, 502, 503, 504} {
		answers[fmt.Sprint(code)] = status(code)
	}
	for answer, instead := range answers {
		for _, phase := range []any{"Pending", "Initializing", "Running", "Failed", "Terminating", "running", "", gone} {
			t.Run(fmt.Sprintf("%s in %v", answer, phase), func(t *testing.T) {
				g := newGated(t)
				g.answer(instead)
				s := newScene(t, g, seiPod(t, g), set(seiNode(), phase, "status", "phase"))
				seen, err := s.look(t), s.approve(t)
				if answer == "503" && phase == "Running" {
					require.NoError(t, err)
					require.Equal(t, kind.HealthNotReady, seen.Health)
					require.Len(t, g.Posts(), 1)
					return
				}
				requireRefused(t, err, reasonChanged)
				require.NotEqual(t, seen.Held == "", phase != "Running", "%+v", seen)
				require.Empty(t, g.Posts())
			})
		}
	}
}

func TestS0_2EveryAnswerIsWhatItIs(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		health kind.Health
		detail string
	}{
		"200":             {status(200), kind.HealthReady, "answers 200"},
		"503":             {status(503), kind.HealthNotReady, "answers 503"},
		"204":             {status(204), kind.HealthProbeError, "answers 204"},
		"500":             {status(500), kind.HealthProbeError, "answers 500"},
		"401":             {status(401), kind.HealthProbeError, "answers 401"},
		"404":             {status(404), kind.HealthProbeError, "answers 404"},
		"early hints":     {func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(103); return false }, kind.HealthNotReady, "answers 503"},
		"no answer":       {func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, kind.HealthUnreachable, "does not answer"},
		"half an answer":  {half, kind.HealthUnreachable, "unexpected EOF"},
		"garbage":         {raw("garbage\r\n\r\n"), kind.HealthUnreachable, "malformed"},
		"another 503":     {raw("HTTP/1.1 5030 x\r\n\r\n"), kind.HealthUnreachable, "malformed"},
		"a 503 in a text": {func(w http.ResponseWriter, _ *http.Request) bool { fmt.Fprint(w, "503"); return true }, kind.HealthReady, "answers 200: 503"},
	} {
		t.Run(name, func(t *testing.T) {
			s := closed(t)
			s.g.answer(tc.answer)
			got := s.look(t)
			require.Equal(t, tc.health, got.Health, got)
			require.Contains(t, got.Detail, tc.detail)
			require.Empty(t, got.Held+got.Unknown)
			require.Equal(t, options().Now(), got.At)
			require.Equal(t, thePod, got.Pod)
			require.Equal(t, theNode, got.Node)
			require.Equal(t, remediations.Object{APIVersion: "sei.io/v1alpha1", Kind: "SeiNode", Namespace: namespace, Name: seiName, UID: "sei-uid"}, got.Owner)
		})
	}
}

// half promises more than it sends.
func half(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Length", "100")
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprint(w, "half")
	return true
}

// raw answers with these bytes.
func raw(bytes string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte(bytes))
			_ = conn.Close()
		}
		return true
	}
}

func TestS0_2ConnectionRefused(t *testing.T) {
	s := closed(t)
	s.g.Close()
	got := s.look(t)
	require.Equal(t, kind.HealthUnreachable, got.Health)
	require.Contains(t, got.Detail, "connection refused")
	requireRefused(t, s.approve(t), reasonChanged, "does not wait for an approval (Unreachable)")
}

func TestS0_3AHangIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	t.Cleanup(func() { close(released) })
	hang := func(begin func(http.ResponseWriter)) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			begin(w)
			select {
			case <-released:
			case <-r.Context().Done():
			}
			return true
		}
	}
	for name, begin := range map[string]func(http.ResponseWriter){
		"before the answer": func(http.ResponseWriter) {},
		"within the answer": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = http.NewResponseController(w).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t)
			t.Cleanup(g.CloseClientConnections)
			g.answer(hang(begin))
			s := newScene(t, g, seiPod(t, g), seiNode(), func(o *Options) { o.HealthTimeout = 2 * time.Second })
			got := s.look(t)
			require.Equal(t, kind.HealthUnreachable, got.Health)
			require.Contains(t, got.Detail, "deadline exceeded")
			requireRefused(t, s.approve(t), reasonChanged)
			require.Empty(t, g.Posts())
		})
	}
}

func TestS0_3AProbeIsOneGETOfItsOwnConnection(t *testing.T) {
	s := closed(t, func(o *Options) { o.HealthTimeout = 0 })
	require.Equal(t, 2*time.Second, s.o.HealthTimeout)
	for range 3 {
		s.look(t)
	}
	from := map[string]bool{}
	for _, r := range s.g.Probes() {
		require.Equal(t, "GET /v0/healthz HTTP/1.1", r.Method+" "+r.RequestURI+" "+r.Proto)
		require.Empty(t, r.Header.Get("Authorization"))
		require.True(t, r.Close)
		from[r.RemoteAddr] = true
	}
	require.Len(t, from, 3)
}

func TestS0_6AcceptedIsSuccessAndTheNextLookProves(t *testing.T) {
	for _, code := range []int{200, 201, 202} {
		s := closed(t)
		s.g.answer(to(code, "half an answ"))
		require.NoError(t, s.approve(t))
		require.Equal(t, kind.HealthNotReady, s.look(t).Health, "it is not claimed that the gate is open")
	}
	s := closed(t)
	require.NoError(t, s.approve(t))
	require.Equal(t, kind.HealthReady, s.look(t).Health)
	requireRefused(t, s.approve(t), reasonChanged, "does not wait for an approval (Ready)")
	require.Len(t, s.g.Posts(), 1)
}

func TestS0_7AFailedAttemptIsFollowedByAnother(t *testing.T) {
	s := closed(t)
	s.g.answer(to(500, `{"error":"disk full"}`))
	requirePerhaps(t, s.approve(t), "the sidecar answered 500: disk full")
	require.Len(t, s.g.Posts(), 1, "one request an attempt, whatever its end")
	s.g.answer(nil)
	require.NoError(t, s.approve(t))
	require.Equal(t, kind.HealthReady, s.look(t).Health)
}

func TestS0_9AKnownIDDoesNothingSilentlyAndANewOneWorks(t *testing.T) {
	s := closed(t)
	first := newID()
	require.NoError(t, s.approveAs(t, first))
	require.JSONEq(t, `{"type":"mark-ready","id":"`+first+`"}`, s.g.Posts()[0].body)
	require.Equal(t, "application/json", s.g.Posts()[0].Header.Get("Content-Type"))

	s.g.restart() // the ids are on the volume
	require.NoError(t, s.approveAs(t, first), "no error says that the id was known")
	require.Equal(t, kind.HealthNotReady, s.look(t).Health)
	require.NoError(t, s.approve(t))
	require.Equal(t, kind.HealthReady, s.look(t).Health)
}

func TestS0_9AMalformedUUIDIsRefused(t *testing.T) {
	s := closed(t)
	for _, id := range []string{
		"", " ", "1", strings.ToUpper(uuid.NewString()), "urn:uuid:" + uuid.NewString(), "{" + uuid.NewString() + "}",
		strings.ReplaceAll(uuid.NewString(), "-", ""), `x","type":"stop-seid`, uuid.NewString() + "\n",
	} {
		requireRefused(t, s.approveAs(t, id), reasonRejected, "is not a UUID")
	}
	require.Empty(t, s.g.Posts())
	require.Empty(t, s.g.Probes())
}

func TestS0_11ProbesAreCountedByOutcome(t *testing.T) {
	r := prometheus.NewRegistry()
	s := closed(t, func(o *Options) { o.Registerer = r })
	other := options()
	other.Name, other.Client, other.Dynamic, other.Registerer = "other", s.kube, s.dyn, r
	_, err := New(other)
	require.NoError(t, err, "providers share the metric")

	for _, answer := range []func(http.ResponseWriter, *http.Request) bool{status(503), status(200), status(503), status(500), raw("")} {
		s.g.answer(answer)
		s.look(t)
	}
	require.NoError(t, testutil.GatherAndCompare(r, strings.NewReader(`
# HELP drydock_sidecar_probes_total Probes of gated sidecars, by provider and outcome.
# TYPE drydock_sidecar_probes_total counter
drydock_sidecar_probes_total{outcome="not_ready",provider="other"} 0
drydock_sidecar_probes_total{outcome="not_ready",provider="sei"} 2
drydock_sidecar_probes_total{outcome="probe_error",provider="other"} 0
drydock_sidecar_probes_total{outcome="probe_error",provider="sei"} 1
drydock_sidecar_probes_total{outcome="ready",provider="other"} 0
drydock_sidecar_probes_total{outcome="ready",provider="sei"} 1
drydock_sidecar_probes_total{outcome="unreachable",provider="other"} 0
drydock_sidecar_probes_total{outcome="unreachable",provider="sei"} 1
`)))
}

func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s arrived elsewhere", r.Method, r.URL)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer elsewhere.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		redirect := func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, elsewhere.URL+"/v0/healthz", code)
			return true
		}
		s := closed(t)
		s.g.answer(redirect)
		require.Equal(t, kind.HealthProbeError, s.look(t).Health)

		s.g.answer(func(w http.ResponseWriter, r *http.Request) bool { return r.Method != http.MethodGet && redirect(w, r) })
		requirePerhaps(t, s.approve(t), fmt.Sprint(code))
	}
}
