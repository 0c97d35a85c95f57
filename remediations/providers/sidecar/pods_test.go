package sidecar

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/remediations"
	kind "drydock.dev/drydock/remediations/targets/sidecar"
)

// podsAnd uses one client for pods, and another one for the discovery.
type podsAnd struct {
	kubernetes.Interface
	real kubernetes.Interface
}

func (p podsAnd) Discovery() discovery.DiscoveryInterfaces { return p.real.Discovery() }

func labelled(key, value string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{key: value})
}

func TestOnlySelectedPodsAreContacted(t *testing.T) {
	for name, tc := range map[string]struct {
		pod       func(*corev1.Pod)
		options   func(*Options)
		unknown   string
		held      string
		contacted bool
	}{
		"selected":          {contacted: true},
		"of that namespace": {options: func(o *Options) { o.Namespaces = []string{"a", namespace} }, contacted: true},
		"other labels":      {pod: func(p *corev1.Pod) { p.Labels = map[string]string{"app": "x"} }, unknown: "(selector sei.io/node)"},
		"no labels":         {pod: func(p *corev1.Pod) { p.Labels = nil }, unknown: "does not select pod"},
		"other namespace":   {options: func(o *Options) { o.Namespaces = []string{"a"} }, unknown: "is not in a namespace of"},
		"pending":           {pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, unknown: "is Pending instead of Running"},
		"no phase":          {pod: func(p *corev1.Pod) { p.Status.Phase = "" }, unknown: "instead of Running"},
		"over":              {pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, unknown: "is Failed instead of Running"},
		"being deleted":     {pod: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, held: "is being deleted"},
		"no UID":            {pod: func(p *corev1.Pod) { p.UID = "" }, unknown: "another object"},
		"no address":        {pod: func(p *corev1.Pod) { p.Status.PodIP = "" }, unknown: "has no address yet"},
		"port not there":    {pod: func(p *corev1.Pod) { p.Spec.InitContainers = p.Spec.InitContainers[:1] }, unknown: "has no container port with the name api"},
		"port of UDP":       {pod: func(p *corev1.Pod) { p.Spec.InitContainers[1].Ports[0].Protocol = corev1.ProtocolUDP }, unknown: "has no container port"},
		"port out of range": {pod: func(p *corev1.Pod) { p.Spec.InitContainers[1].Ports[0].ContainerPort = 70000 }, unknown: "has no container port"},
		"two of one name": {pod: func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "api", ContainerPort: 1}}
		}, unknown: "has two container ports with the name api"},
		"port of a container": {pod: func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = p.Spec.InitContainers[1].Ports
			p.Spec.InitContainers = nil
		}, contacted: true},
		"port of a number": {options: func(o *Options) { o.Port = "PORT" }, pod: func(p *corev1.Pod) { p.Spec.InitContainers = nil }, contacted: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			pod := seiPod(t, g)
			if tc.pod != nil {
				tc.pod(pod)
			}
			s := newScene(t, g, pod, seiNode(), func(o *Options) {
				if tc.options != nil {
					tc.options(o)
				}
				if o.Port == "PORT" {
					_, port := g.addr(t)
					o.Port = fmt.Sprint(port)
				}
			})
			got := s.look(t)
			require.Contains(t, got.Unknown, tc.unknown)
			require.Contains(t, got.Held, tc.held)
			require.Equal(t, tc.contacted, got.Held+got.Unknown == "")
			require.Equal(t, tc.contacted, len(g.Probes()) > 0)
			require.Equal(t, tc.contacted, s.approve(t) == nil)
			require.Equal(t, tc.contacted, len(g.Posts()) > 0)
		})
	}
}

func TestAnAddressOfNoPodIsNotContacted(t *testing.T) {
	for _, ip := range []string{
		"169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fe80::1%lo", "::1%lo", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "::ffff:255.255.255.255", "::ffff:0.0.0.0",
		"localhost", "127.0.0.1:80", "127.1", "2130706433", "127.0.0.1/x", "[::1]", "u@127.0.0.1", "\x00",
	} {
		t.Run(ip, func(t *testing.T) {
			g := newGated(t)
			pod := seiPod(t, g)
			pod.Status.PodIP = ip
			s := newScene(t, g, pod, seiNode())
			require.Contains(t, s.look(t).Unknown, "cannot be the address of a pod")
			requireRefused(t, s.approve(t), reasonChanged)
			require.Empty(t, g.Probes())
		})
	}
}

func TestAPodThatIsNotThereOrCannotBeRead(t *testing.T) {
	s := closed(t)
	none := asking()
	none.Pod.Name = "rpc-2-0"
	got := s.Look(t.Context(), none.Pod)
	require.Equal(t, kind.Observation{At: options().Now(), Pod: remediations.Pod{Namespace: namespace, Name: "rpc-2-0"}}, got, "there is no such pod, and nothing is unknown")
	requireRefused(t, s.Approve(t.Context(), none, yes), reasonChanged, "the pod no longer exists")

	before := len(s.kube.Actions())
	for _, name := range []string{"", "..", "a/b", "Rpc-1-0", "rpc-1-0/log", "rpc-1-0\n", strings.Repeat("a", 300)} {
		got := s.Look(t.Context(), remediations.Pod{Namespace: namespace, Name: name})
		require.Contains(t, got.Unknown, "is not a valid name of a pod")
		requireText(t, got.Unknown)
		require.Contains(t, s.Look(t.Context(), remediations.Pod{Namespace: name, Name: "rpc-1-0"}).Unknown, "is not a valid name of a pod")
	}
	require.Len(t, s.kube.Actions(), before, "such a name never reaches the API server")

	for name, answer := range map[string]struct {
		pod  *corev1.Pod
		err  error
		text string
	}{
		"forbidden": {err: apierrors.NewForbidden(corev1.Resource("pods"), "rpc-1-0", nil), text: "reading pod pacific-1/rpc-1-0: "},
		"another":   {pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rpc-10", UID: "u"}}, text: "another object"},
	} {
		t.Run(name, func(t *testing.T) {
			s := closed(t)
			s.kube.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, answer.pod, answer.err })
			require.Contains(t, s.look(t).Unknown, answer.text)
			requireRefused(t, s.approve(t), reasonChanged, answer.text)
			require.Empty(t, s.g.Probes())
		})
	}
}

func TestAddressesOfEitherFamily(t *testing.T) {
	for _, addr := range []string{"[::1]:0", "127.0.0.7:0"} {
		g := newGated(t, on(t, addr))
		s := newScene(t, g, seiPod(t, g), seiNode())
		got := s.look(t)
		require.Equal(t, kind.HealthNotReady, got.Health, got)
		require.NoError(t, s.approve(t))
		require.Equal(t, kind.HealthReady, s.look(t).Health)
		require.Equal(t, strings.TrimPrefix(g.URL, "http://"), g.Posts()[0].Host)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	long := strings.Repeat("é\x1b[31m\r\n\u202e", 1<<20)
	var sent atomic.Int64 // one handler may not have ended yet when the next begins
	endless := func(code int, method string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != method {
				return false
			}
			w.WriteHeader(code)
			for range 64 {
				n, err := fmt.Fprint(w, long)
				sent.Add(int64(n))
				if err != nil {
					break
				}
			}
			return true
		}
	}
	s := closed(t)
	s.g.answer(endless(503, "GET"))
	got := s.look(t)
	require.Equal(t, kind.HealthNotReady, got.Health, "the code is enough")
	require.Contains(t, got.Detail, "answers 503: é [31m é [31m")
	require.LessOrEqual(t, len(got.Detail), 300)
	s.g.Config.SetKeepAlivesEnabled(false)

	s.g.answer(endless(400, "POST"))
	err := s.approve(t)
	requireRefused(t, err, reasonRejected, "the sidecar answered 400: é [31m")
	require.LessOrEqual(t, len(err.Error()), 400)
	s.g.Close() // waits until its handlers have seen the connections closed
	require.Less(t, sent.Load(), int64(2*len(long)), "nobody read on")

	header := closed(t)
	header.g.answer(func(w http.ResponseWriter, _ *http.Request) bool {
		for i := range 100 {
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 1000))
		}
		w.WriteHeader(503)
		return true
	})
	require.Equal(t, kind.HealthUnreachable, header.look(t).Health)
}

func caFile(t *testing.T, certs ...*x509.Certificate) string {
	t.Helper()
	var all []byte
	for _, c := range certs {
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	path := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(path, all, 0o600))
	return path
}

func overTLS(s *httptest.Server) { s.StartTLS() }

func TestTLSIsAsConfigured(t *testing.T) {
	g := newGated(t, overTLS)
	https := func(cfg promconfig.TLSConfig) func(*Options) {
		return func(o *Options) { o.Scheme, o.TLS = "https", cfg }
	}
	path := caFile(t, g.Certificate())
	scene := func(cfg promconfig.TLSConfig) *scene { return newScene(t, g, seiPod(t, g), seiNode(), https(cfg)) }

	s := scene(promconfig.TLSConfig{CAFile: path})
	require.Equal(t, kind.HealthNotReady, s.look(t).Health)
	require.NoError(t, s.approve(t))
	require.Equal(t, "HTTP/1.1", g.Posts()[0].Proto)
	require.NotNil(t, g.Posts()[0].TLS)
	g.restart()

	require.Equal(t, kind.HealthNotReady, scene(promconfig.TLSConfig{CAFile: path, ServerName: "example.com"}).look(t).Health)
	require.Equal(t, kind.HealthNotReady, scene(promconfig.TLSConfig{InsecureSkipVerify: true}).look(t).Health)
	for name, cfg := range map[string]promconfig.TLSConfig{
		"unknown authority": {},
		"another name":      {CAFile: path, ServerName: "pod.example.org"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(cfg)
			require.Equal(t, kind.HealthUnreachable, s.look(t).Health)
			require.Contains(t, s.look(t).Detail, "TLS handshake with")
		})
	}

	require.NoError(t, os.WriteFile(path, []byte("no certificate"), 0o600))
	require.Equal(t, kind.HealthUnreachable, s.look(t).Health, "the file is read again")
	require.Contains(t, s.look(t).Detail, "reading the TLS configuration")

	plain := newGated(t)
	s = newScene(t, plain, seiPod(t, plain), seiNode(), https(promconfig.TLSConfig{}))
	require.Equal(t, kind.HealthUnreachable, s.look(t).Health)
	require.Empty(t, plain.Probes())
}

// TestALookSaysSinceWhenTheGateMayBeClosed: the start of sei-sidecar in a SeiNode's pod. In other
// pods it is the last start of a container that may have the gate: not seid, which waits behind it,
// and not an init container that has ended.
func TestALookSaysSinceWhenTheGateMayBeClosed(t *testing.T) {
	at := func(name string, minute int) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon(minute))}}}
	}
	for name, tc := range map[string]struct {
		sidecar           string
		noOwner           bool
		containers, inits []corev1.ContainerStatus
		want              time.Time
	}{
		"the proxy's or the sidecar's, whichever is later": {"sidecar", false, []corev1.ContainerStatus{at("sidecar", 5)}, []corev1.ContainerStatus{at("kube-rbac-proxy", 3)}, noon(5)},
		"not seid's":                       {"sidecar", false, []corev1.ContainerStatus{at("seid", 50), at("sidecar", 5)}, nil, noon(5)},
		"nor an init container's":          {"sidecar", false, []corev1.ContainerStatus{at("sidecar", 5)}, []corev1.ContainerStatus{at("seid-init", 50)}, noon(5)},
		"nor one that is not in the spec":  {"sidecar", false, []corev1.ContainerStatus{at("sidecar", 5), at("sei-sidecar", 50)}, nil, noon(5)},
		"one that waits says nothing":      {"sidecar", false, []corev1.ContainerStatus{{Name: "sidecar"}}, nil, time.Time{}},
		"a pod without statuses, likewise": {"sidecar", false, nil, nil, time.Time{}},
		"a SeiNode's sidecar alone":        {"sei-sidecar", false, []corev1.ContainerStatus{at("sei-sidecar", 5)}, []corev1.ContainerStatus{at("kube-rbac-proxy", 50)}, noon(5)},
		"also if it says nothing":          {"sei-sidecar", false, []corev1.ContainerStatus{{Name: "sei-sidecar"}}, []corev1.ContainerStatus{at("kube-rbac-proxy", 50)}, time.Time{}},
		"a name means nothing elsewhere":   {"sei-sidecar", true, []corev1.ContainerStatus{at("sei-sidecar", 5)}, []corev1.ContainerStatus{at("kube-rbac-proxy", 50)}, noon(50)},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			pod := seiPod(t, g)
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: tc.sidecar})
			pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = tc.containers, tc.inits
			s := newScene(t, g, pod, seiNode(), func(o *Options) {
				if tc.noOwner {
					o.Owner, o.Dynamic = "", nil
				}
			})
			require.True(t, tc.want.Equal(s.look(t).StartedAt))
		})
	}
}

func noon(minute int) time.Time { return time.Date(2026, 11, 20, 12, minute, 0, 0, time.UTC) }

// TestWhatTheControllerSawOfTheGateIsRead: the condition SidecarReady has the time, and a look
// passes it on.
func TestWhatTheControllerSawOfTheGateIsRead(t *testing.T) {
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		conditions        []any
		closedSince, open time.Time
	}{
		"closed":             {conditions: []any{condition("Paused", "False", "NotPaused"), condition("SidecarReady", "False", "NotReady")}, closedSince: since},
		"open":               {conditions: []any{condition("SidecarReady", "True", "Ready")}, open: since},
		"not known":          {conditions: []any{condition("SidecarReady", "Unknown", "Unreachable")}},
		"no such condition":  {conditions: []any{condition("Paused", "False", "NotPaused")}},
		"no time":            {conditions: []any{set(condition("SidecarReady", "False", "NotReady"), gone, "lastTransitionTime")}},
		"a time that is odd": {conditions: []any{set(condition("SidecarReady", "False", "NotReady"), "yesterday", "lastTransitionTime")}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			s := newScene(t, g, seiPod(t, g), set(seiNode(), tc.conditions, "status", "conditions"))
			saw := Clients{"sei": s.Client}.Look(t.Context(), "sei", remediations.Pod{Namespace: namespace, Name: thePod.Name})
			require.Equal(t, kind.HealthNotReady, saw.Health, saw.Unknown)
			require.Equal(t, tc.closedSince, saw.ClosedSince)
			require.Equal(t, tc.open, saw.OpenAt)
		})
	}
}
