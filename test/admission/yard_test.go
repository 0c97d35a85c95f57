package admission

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/test/admission/requests"
)

var bg = context.Background()

// yard is a Drydock that serves admission, with the chart's policy and webhook configuration
// installed. Another holder has the leader's Lease, so no replica handles the records that a test
// writes. Replicas that do not lead serve admission, too.
type yard struct {
	t       *testing.T
	lab     *lab.Lab
	drydock *lab.Drydock
	user    kubernetes.Interface // with Drydock's own user, which admission allows
	kubectl
}

func newYard(t *testing.T, l *lab.Lab, mode string, over ...map[string]any) *yard {
	t.Helper()
	admission, err := lab.NewAdmission(map[string]any{"evictions": true, "exempt": exempt()})
	require.NoError(t, err)
	token, err := l.PrepareDrydockWith(t.Context(), admission.Values(map[string]any{"mode": mode, "providers": map[string]any{"karpenter": map[string]any{}, "external": map[string]any{}}}))
	require.NoError(t, err)
	t.Cleanup(func() { removeAdmission(t, l) })
	y := &yard{t: t, lab: l, user: as(t, l, requests.Drydock), kubectl: newKubectl(t, l)}
	y.anotherLeads()
	key, err := l.WriteSecret("civo-key", "nobody's")
	require.NoError(t, err)
	plan := []any{map[string]any{"step": "reboot"}}
	config := map[string]any{
		"mode": mode, "alertmanager": map[string]any{"urls": []any{"http://127.0.0.1:9"}},
		"providers": map[string]any{"karpenter": map[string]any{}, "external": map[string]any{}, "civo": map[string]any{"apiURL": "http://127.0.0.1:9", "clusterID": "c", "region": "r", "apiKeyFile": key}},
		"policies": []any{
			map[string]any{"name": "node-not-ready", "match": []any{`a="b"`}, "witness": "none", "plan": plan},
			map[string]any{"name": "only-observes", "match": []any{`a="b"`}, "witness": "none", "mode": "observe", "plan": plan},
		},
	}
	for _, o := range over {
		maps.Copy(config, o)
	}
	y.drydock, err = l.StartDrydock(t.Context(), token, lab.DrydockOptions{Admission: admission, Config: config})
	require.NoError(t, err)
	t.Cleanup(y.drydock.Kill)
	if mode == "enforce" {
		await(t, "the policy", func() bool { return forged(t, l) == "policy" })
		// This is denied only by the webhook.
		c := requests.Case{Before: flight, Change: noExecute, By: requests.Person}
		await(t, "the webhook", func() bool {
			return denier(try(t, t.Context(), y.user, as(t, l, requests.Person), &c)) == "webhook"
		})
	}
	return y
}

func flight(n *corev1.Node) { requests.Put(n, requests.Record(remediations.PhaseVerifying)) }

func noExecute(n *corev1.Node) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoExecute})
}

// anotherLeads takes the leader's Lease for an hour.
func (y *yard) anotherLeads() {
	y.t.Helper()
	leases := y.lab.Client().CoordinationV1().Leases(lab.Namespace)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "drydock"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("another"), LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}
	if _, err := leases.Create(y.t.Context(), lease, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		require.NoError(y.t, err)
	}
}

// becomes writes on the node what Drydock would write for a repair in that phase. An empty phase
// removes it.
func (y *yard) becomes(node string, phase remediations.Phase, more ...func(*corev1.Node)) {
	y.t.Helper()
	n := requests.Bare()
	n.Name = node
	n.Labels[corev1.LabelHostname] = node
	if phase != "" {
		requests.Put(n, requests.Record(phase))
	}
	for _, f := range more {
		f(n)
	}
	put(y.t, y.t.Context(), y.user, n)
}

func (y *yard) node(name string) *corev1.Node {
	y.t.Helper()
	n, err := y.lab.Client().CoreV1().Nodes().Get(y.t.Context(), name, metav1.GetOptions{})
	require.NoError(y.t, err)
	return n
}

// events returns the notes of all Events with that reason.
func (y *yard) events(reason string) (notes []string) {
	y.t.Helper()
	events, err := y.lab.Client().EventsV1().Events("").List(y.t.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
	require.NoError(y.t, err)
	for _, e := range events.Items {
		notes = append(notes, e.Note)
	}
	return notes
}

// metric returns one of Drydock's metrics.
func (y *yard) metric(name string) float64 {
	y.t.Helper()
	req, err := http.NewRequestWithContext(y.t.Context(), http.MethodGet, y.drydock.MetricsURL, nil)
	require.NoError(y.t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(y.t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(y.t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			var v float64
			_, err := fmt.Sscan(rest, &v)
			require.NoError(y.t, err)
			return v
		}
	}
	require.Fail(y.t, "there is no such metric", name)
	return 0
}
