package sidecar

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/sidecar/settings"
	kind "drydock.dev/drydock/remediations/targets/sidecar"
)

// gated is a sidecar that behaves like Sei's: its gate is in the memory of its process, the ids
// that it has received are on the volume, and a known id is answered like a new one.
type gated struct {
	*httptest.Server
	mu      sync.Mutex
	open    bool
	stuck   bool            // approvals are accepted, and have no effect
	known   map[string]bool // survives restart
	probes  []*http.Request
	posts   []post
	instead func(w http.ResponseWriter, r *http.Request) bool
}

type post struct {
	*http.Request
	body string
}

func newGated(t *testing.T, adjust ...func(*httptest.Server)) *gated {
	t.Helper()
	g := &gated{known: map[string]bool{}}
	g.Server = httptest.NewUnstartedServer(g)
	g.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail are what some tests are about
	for _, f := range adjust {
		f(g.Server)
	}
	if g.URL == "" {
		g.Start()
	}
	t.Cleanup(g.Close)
	return g
}

// on makes it listen on another address.
func on(t *testing.T, addr string) func(*httptest.Server) {
	return func(s *httptest.Server) {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
		if err != nil {
			t.Skipf("this machine cannot listen on %s: %s", addr, err)
		}
		require.NoError(t, s.Listener.Close())
		s.Listener = l
	}
}

func (g *gated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	g.mu.Lock()
	if r.Method == http.MethodGet {
		g.probes = append(g.probes, r)
	} else {
		g.posts = append(g.posts, post{r, string(body)})
	}
	instead := g.instead
	g.mu.Unlock()
	if instead != nil && instead(w, r) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch r.Method + " " + r.URL.Path {
	case "GET /v0/healthz":
		if !g.open {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case "POST /v0/tasks":
		var task struct{ Type, ID string }
		if json.Unmarshal(body, &task) != nil || task.Type != "mark-ready" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"type is required"}`)
			return
		}
		if !g.known[task.ID] && !g.stuck {
			g.open = true
		}
		g.known[task.ID] = true
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]string{"id": task.ID})
	default:
		http.NotFound(w, r)
	}
}

// restart has the effect of a replaced pod.
func (g *gated) restart() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = false
}

func (g *gated) answer(instead func(w http.ResponseWriter, r *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.instead = instead
}

// status answers every probe with the code; approvals are served.
func status(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			w.WriteHeader(code)
		}
		return r.Method == http.MethodGet
	}
}

// to answers approvals with a status and a text; probes are served.
func to(code int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
		return r.Method != http.MethodGet
	}
}

func (g *gated) Posts() []post {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]post(nil), g.posts...)
}

func (g *gated) Probes() []*http.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]*http.Request(nil), g.probes...)
}

func (g *gated) addr(t *testing.T) (ip string, port int32) {
	t.Helper()
	u, err := url.Parse(g.URL)
	require.NoError(t, err)
	n, err := strconv.ParseInt(u.Port(), 10, 32)
	require.NoError(t, err)
	return u.Hostname(), int32(n)
}

const (
	namespace = "pacific-1"
	seiName   = "rpc-1"
	image     = "seid:v6.1.0"
	token     = "eyJhbGciOiJSUzI1NiJ9.correct/horse+battery=staple&<x>.c2lnbmF0dXJl"
)

var thePod = remediations.Pod{Namespace: namespace, Name: "rpc-1-0", UID: "uid-1"}

const theNode = "node-1"

// asking returns an approval of the pod's sidecar, with an id that was never used before.
func asking() engine.Approval {
	return engine.Approval{Provider: "sei", Pod: thePod, Node: theNode, Task: newID()}
}

// seiPod is the pod of a SeiNode, as its controller makes it: the proxy is a restartable init
// container.
func seiPod(t *testing.T, g *gated) *corev1.Pod {
	t.Helper()
	ip, port := g.addr(t)
	always := corev1.ContainerRestartPolicyAlways
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: thePod.Name, UID: "uid-1", Labels: map[string]string{seiNodeLabel: seiName},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1",
			InitContainers: []corev1.Container{
				{Name: "seid-init", Ports: []corev1.ContainerPort{{Name: "api", ContainerPort: 1}}},
				{Name: "kube-rbac-proxy", RestartPolicy: &always, Ports: []corev1.ContainerPort{{Name: "api", ContainerPort: port}}},
			},
			Containers: []corev1.Container{{Name: "seid", Image: image}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip},
	}
}

// seiNode is a SeiNode that allows an approval.
func seiNode() map[string]any {
	return map[string]any{
		"apiVersion": "sei.io/v1alpha1", "kind": "SeiNode",
		"metadata": map[string]any{"namespace": namespace, "name": seiName, "uid": "sei-uid"},
		"spec":     map[string]any{"image": image, "paused": false},
		"status": map[string]any{
			"phase": "Running", "currentImage": image,
			"conditions": []any{
				condition("SidecarReady", "False", "NotReady"), condition("Paused", "False", "NotPaused"),
				condition("NodeUpdateInProgress", "False", "UpdateComplete"), condition("WorkflowInProgress", "False", "NoWorkflow"),
			},
		},
	}
}

func condition(kind, status, reason string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
}

// set puts a value into a nested object, or removes the field if the value is gone.
func set(o map[string]any, v any, path ...string) map[string]any {
	at := o
	for _, key := range path[:len(path)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	at[path[len(path)-1]] = v
	if v == gone {
		delete(at, path[len(path)-1])
	}
	return o
}

type nothing struct{}

var gone = nothing{}

// scene is a pod, its SeiNode, its sidecar and a Client for them.
type scene struct {
	*Client
	g    *gated
	kube *kubefake.Clientset
	dyn  *dynamicfake.FakeDynamicClient
}

func options() Options {
	selector, _ := labels.Parse(seiNodeLabel)
	return Options{Sidecar: settings.Sidecar{
		Name: "sei", Selector: selector, Scheme: "http", Port: "api",
		HealthPath: "/v0/healthz", ReadyCode: 200, NotReadyCode: 503, HealthTimeout: 10 * time.Second,
		ApproveMethod: "POST", ApprovePath: "/v0/tasks", ApproveBody: `{"type":"mark-ready","id":"{id}"}`,
		ApproveCodes: []int{200, 201, 202}, ApproveTimeout: 10 * time.Second,
		Owner: settings.OwnerSeiNode, Via: settings.ViaHTTP,
	}, Now: func() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }}
}

func newScene(t *testing.T, g *gated, pod *corev1.Pod, node map[string]any, adjust ...func(*Options)) *scene {
	t.Helper()
	s := &scene{g: g, kube: kubefake.NewClientset()}
	if pod != nil {
		require.NoError(t, s.kube.Tracker().Add(pod))
	}
	s.dyn = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		seiNodes: "SeiNodeList", seiNodeTasks: "SeiNodeTaskList",
	})
	if node != nil {
		require.NoError(t, s.dyn.Tracker().Create(seiNodes, &unstructured.Unstructured{Object: node}, namespace))
	}
	o := options()
	o.Client, o.Dynamic = s.kube, s.dyn
	for _, f := range adjust {
		f(&o)
	}
	var err error
	s.Client, err = New(o)
	require.NoError(t, err)
	return s
}

// closed is the usual scene: everything is right except the gate.
func closed(t *testing.T, adjust ...func(*Options)) *scene {
	t.Helper()
	g := newGated(t)
	return newScene(t, g, seiPod(t, g), seiNode(), adjust...)
}

func (s *scene) look(t *testing.T) kind.Observation {
	t.Helper()
	got := s.Look(t.Context(), thePod)
	require.False(t, got.Held != "" && got.Unknown != "", "one of them: %+v", got)
	requireText(t, got.Held+got.Unknown+got.Detail)
	return got
}

func (s *scene) approve(t *testing.T) error { t.Helper(); return s.approveAs(t, newID()) }

func (s *scene) approveAs(t *testing.T, id string) error {
	t.Helper()
	a := asking()
	a.Task = id
	return s.Approve(t.Context(), a, yes)
}

func newID() string { return uuid.NewString() }
func yes() error    { return nil }

func requireRefused(t *testing.T, err error, why reason, texts ...string) {
	t.Helper()
	var refused *refusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, why, refused.Reason, err)
	require.ErrorContains(t, err, "nothing was approved")
	for _, text := range texts {
		require.ErrorContains(t, err, text)
	}
	requireText(t, err.Error())
}

func requirePerhaps(t *testing.T, err error, texts ...string) {
	t.Helper()
	require.ErrorContains(t, err, "the sidecar may have been approved")
	var refused *refusedError
	require.NotErrorAs(t, err, &refused)
	for _, text := range texts {
		require.ErrorContains(t, err, text)
	}
	requireText(t, err.Error())
}

// requireText asserts what holds for every text of this package.
func requireText(t *testing.T, text string) {
	t.Helper()
	require.LessOrEqual(t, len(text), 1000)
	for _, r := range text {
		require.False(t, r < ' ' || r == 0x7f, "%q", text)
	}
	require.NotContains(t, text, token)
}
