package lab_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/sidecarsim"
)

// pager receives what an Alertmanager posts, and keeps all of it.
type pager struct {
	url string

	mu     sync.Mutex
	alerts []page
}

type page struct {
	At     time.Time
	Status string
	Labels map[string]string
}

func newPager(t *testing.T) *pager {
	p := &pager{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var post struct{ Alerts []page }
		if json.NewDecoder(r.Body).Decode(&post) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, a := range post.Alerts {
			a.At = time.Now()
			p.alerts = append(p.alerts, a)
		}
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// pages returns the posts about one pod.
func (p *pager) pages(pod, status string) []page {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []page
	for _, a := range p.alerts {
		if a.Labels["pod"] == pod && a.Status == status {
			found = append(found, a)
		}
	}
	return found
}

func (p *pager) await(t *testing.T, pod, status string) page {
	t.Helper()
	require.Eventually(t, func() bool { return len(p.pages(pod, status)) > 0 }, lab.Patience, 50*time.Millisecond, "%s %s", pod, status)
	return p.pages(pod, status)[0]
}

// TestAReplacedPodsSidecarRaisesAnAlertAndOneThatDoesNotAnswerDoesNot: the whole chain is real,
// from the StatefulSet's controller to the Alertmanager's post, with the shipped scrape
// configuration and the shipped rule.
func TestAReplacedPodsSidecarRaisesAnAlertAndOneThatDoesNotAnswerDoesNot(t *testing.T) {
	ctx, second, phone := t.Context(), time.Second, newPager(t)
	l := lab.New(t, lab.Options{
		Nodes: 2, Sidecars: true, RuleFiles: []string{"../../rules/SidecarNotReady.yaml"}, RuleFor: &second, Out: t.Output(),
		Webhook: lab.WebhookTarget{URL: phone.url},
	})
	s, err := l.StartSidecars(ctx)
	require.NoError(t, err)
	rpc := lab.SeiNodeSpec{Namespace: "sei", Name: "rpc", Node: "node-1"}
	hangs, fails, well := rpc, rpc, rpc
	hangs.Name, fails.Name, well.Name, well.NoProxy = "hangs", "fails", "well", true
	begun := time.Now()
	require.NoError(t, s.AddSeiNodes(ctx, rpc, hangs, fails, well))
	t.Logf("four SeiNodes in %s", time.Since(begun))
	require.Empty(t, s.Closed())
	_, err = s.AwaitCall(ctx, func(c sidecarsim.Call) bool { return c.Pod.Key() == rpc.Pod() && c.Status == http.StatusOK })
	require.NoError(t, err)

	// Two of the sidecars do not answer 503, although their gates are closed. They come first:
	// Prometheus learns of new pods only within five seconds, and until then probes the present
	// owner of an address.
	s.Inject(hangs.Pod(), sidecarsim.Health, sidecarsim.Hang())
	s.Inject(fails.Pod(), sidecarsim.Health, sidecarsim.Answer(http.StatusInternalServerError, nil))
	replace := func(spec lab.SeiNodeSpec) {
		old, _ := s.Pod(spec.Pod())
		replaced, err := s.ReplacePod(ctx, spec)
		require.NoError(t, err)
		require.NotEqual(t, old.UID, replaced.UID)
		require.Equal(t, "node-1", replaced.Node)
	}
	replace(hangs)
	replace(fails)
	for pod, code := range map[string]string{"hangs-0": "0", "fails-0": "500", "well-0": "200"} {
		query := url.QueryEscape(`probe_http_status_code{pod="` + pod + `"}`)
		require.Eventually(t, func() bool {
			answer, err := get(t, l.PrometheusURL()+"/api/v1/query?query="+query)
			return err == nil && strings.Contains(answer, `,"`+code+`"]`)
		}, lab.Patience, 100*time.Millisecond, "%s %s", pod, code)
	}
	begun = time.Now()
	replace(rpc)
	t.Logf("pod replaced in %s", time.Since(begun))
	_, err = s.AwaitCall(ctx, func(c sidecarsim.Call) bool {
		return c.Pod.Key() == rpc.Pod() && c.Status == http.StatusServiceUnavailable
	})
	require.NoError(t, err)
	t.Logf("first 503 after %s", time.Since(begun))
	fired := phone.await(t, "rpc-0", "firing")
	t.Logf("alert at the webhook %s after the deletion", fired.At.Sub(begun))
	require.Equal(t, map[string]string{
		"alertname": "SidecarNotReady", "namespace": "sei", "pod": "rpc-0", "seinode": "rpc", "node": "node-1",
		"severity": "warning", "remediation": "sidecar-not-ready",
	}, fired.Labels)

	// When the gate opens, the alert is resolved.
	require.NoError(t, s.Post(ctx, rpc.Pod(), sidecarsim.MarkReady))
	begun = time.Now()
	t.Logf("resolved after %s", phone.await(t, "rpc-0", "resolved").At.Sub(begun))
	require.Empty(t, phone.pages("hangs-0", "firing"))
	require.Empty(t, phone.pages("fails-0", "firing"))
	require.Empty(t, phone.pages("well-0", "firing"))

	// Only their other answers kept the alert from firing for them.
	s.Heal(hangs.Pod())
	s.Heal(fails.Pod())
	phone.await(t, "hangs-0", "firing")
	phone.await(t, "fails-0", "firing")

	// The SeiNode's condition has the form that the rule SeiNodeSidecarReadinessLost needs.
	require.NoError(t, s.PatchSeiNodeStatus(ctx, "sei", "rpc", map[string]any{"conditions": []any{map[string]any{
		"type": "SidecarReady", "status": "False", "reason": "NotReady", "message": "", "lastTransitionTime": "2026-11-20T21:00:00Z",
	}}}))
	query := url.QueryEscape(`min by (namespace, seinode) (kube_seinode_condition_status{type="SidecarReady",status=~"(?i)false"})`)
	require.Eventually(t, func() bool {
		answer, err := get(t, l.PrometheusURL()+"/api/v1/query?query="+query)
		return err == nil && strings.Contains(answer, `{"metric":{"namespace":"sei","seinode":"rpc"},"value":[`) &&
			strings.Contains(answer, `,"1"]`) && strings.Contains(answer, `"seinode":"well"`)
	}, lab.Patience, 200*time.Millisecond)
}

func TestTheProxyAsksTheAPIServerWhoPosts(t *testing.T) {
	ctx := t.Context()
	l := lab.New(t, lab.Options{Components: lab.ControlPlane, Nodes: 2})
	s, err := l.StartSidecars(ctx)
	require.NoError(t, err)
	rpc, bare := lab.SeiNodeSpec{Namespace: "sei", Name: "rpc", Node: "node-0"}, lab.SeiNodeSpec{Name: "bare", Node: "node-0", Plain: true, NoProxy: true}
	require.NoError(t, s.AddSeiNodes(ctx, rpc, bare))
	guest, err := l.ServiceAccountToken(ctx, "sei", "guest")
	require.NoError(t, err)
	post := func(spec lab.SeiNodeSpec, token string) int {
		p, runs := s.Pod(spec.Pod())
		require.True(t, runs)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+net.JoinHostPort(p.IP, strconv.Itoa(s.Port()))+"/v0/tasks", strings.NewReader(`{"type":"mark-not-ready"}`))
		require.NoError(t, err)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, 401, post(rpc, ""))
	require.Equal(t, 401, post(rpc, "made-up"))
	require.Equal(t, 403, post(rpc, guest))
	require.Equal(t, "system:serviceaccount:sei:guest", s.CallsTo(rpc.Pod(), sidecarsim.Submit)[2].User)
	require.Empty(t, s.Closed())

	// The right to the tasks of this SeiNode is enough for this one, and for no other SeiNode.
	roles := l.Client().RbacV1()
	_, err = roles.Roles("sei").Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "guest"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"sei.io"}, Resources: []string{"seinodetasks"}, ResourceNames: []string{"rpc"}, Verbs: []string{"create"},
	}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = roles.RoleBindings("sei").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "guest"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "guest"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "sei", Name: "guest"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return post(rpc, guest) == 201 }, lab.Patience, 50*time.Millisecond)
	require.Equal(t, []string{rpc.Pod()}, s.Closed())
	require.Equal(t, 201, post(bare, ""), "nobody asks there")

	t.Run("a SeiNodeTask opens the gate, unless its SeiNode is in another phase", func(t *testing.T) {
		client, err := dynamic.NewForConfig(l.AdminConfig())
		require.NoError(t, err)
		tasks := client.Resource(lab.SeiNodeTasks).Namespace("sei")
		task := func(name string) (phase string) {
			_, err := tasks.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "sei.io/v1alpha1", "kind": "SeiNodeTask", "metadata": map[string]any{"name": name},
				"spec": map[string]any{"kind": "MarkReady", "markReady": map[string]any{}, "target": map[string]any{"nodeRef": map[string]any{"name": "rpc"}}},
			}}, metav1.CreateOptions{})
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				o, err := tasks.Get(ctx, name, metav1.GetOptions{})
				require.NoError(t, err)
				phase, _, _ = unstructured.NestedString(o.Object, "status", "phase")
				return phase != ""
			}, lab.Patience, 20*time.Millisecond)
			return phase
		}
		require.NoError(t, s.PatchSeiNodeStatus(ctx, "sei", "rpc", map[string]any{"phase": "Initializing"}))
		require.Equal(t, "Failed", task("early"))
		require.False(t, s.Ready(rpc.Pod()))
		require.NoError(t, s.PatchSeiNodeStatus(ctx, "sei", "rpc", map[string]any{"phase": "Running"}))
		require.Equal(t, "Complete", task("now"))
		require.True(t, s.Ready(rpc.Pod()))
		done := s.Done(rpc.Pod())
		require.Equal(t, lab.SeiController, done[len(done)-1].User)
	})

	t.Run("a pod moves, and a node reboots with thirty", func(t *testing.T) {
		moved, err := s.MovePod(ctx, rpc, "node-1")
		require.NoError(t, err)
		require.Equal(t, "node-1", moved.Node)
		require.False(t, s.Ready(rpc.Pod()))
		var many []lab.SeiNodeSpec
		for i := range 30 {
			many = append(many, lab.SeiNodeSpec{Namespace: "sei", Name: fmt.Sprintf("n%02d", i), Node: "node-1"})
		}
		begun := time.Now()
		require.NoError(t, s.AddSeiNodes(ctx, many...))
		t.Logf("thirty SeiNodes in %s", time.Since(begun))
		addresses := map[string]bool{}
		for _, p := range s.Pods() {
			addresses[p.IP] = true
		}
		require.Len(t, addresses, 32)
		require.Len(t, s.RestartOn("node-1"), 31)
		require.Len(t, s.Closed(), 32)
	})
}
