package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/test/admission/requests"
)

// crowded is a node that has very many labels and annotations from its kubelet.
const crowded = "n5"

// fill gives the Node that many labels and annotations. It also writes a record of Drydock's, so
// that the policy's expressions do not end early.
func fill(t testing.TB, drydock kubernetes.Interface, keys int) {
	t.Helper()
	n, err := drydock.CoreV1().Nodes().Get(t.Context(), crowded, metav1.GetOptions{})
	require.NoError(t, err)
	n.ResourceVersion, n.ManagedFields = "", nil
	n.Labels, n.Annotations = map[string]string{corev1.LabelHostname: crowded}, map[string]string{}
	if keys > 0 {
		n.Annotations[remediations.NodeRepairKey] = requests.Record(remediations.PhasePending).Encode()
	}
	for i := range keys {
		n.Labels[fmt.Sprintf("l%05x", i)], n.Annotations[fmt.Sprintf("a%05x", i)] = "", ""
	}
	_, err = drydock.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// kubeletWrites are the writes of a kubelet.
var kubeletWrites = map[string]func(ctx context.Context, nodes typedcorev1.NodeInterface) error{
	"a heartbeat": func(ctx context.Context, nodes typedcorev1.NodeInterface) error {
		body := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
		_, err := nodes.Patch(ctx, crowded, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "status")
		return err
	},
	"an annotation": func(ctx context.Context, nodes typedcorev1.NodeInterface) error {
		_, err := nodes.Patch(ctx, crowded, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"a00000":"%d"}}}`, time.Now().UnixNano()), metav1.PatchOptions{})
		return err
	},
	"a label": func(ctx context.Context, nodes typedcorev1.NodeInterface) error {
		_, err := nodes.Patch(ctx, crowded, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"l00000":"%d"}}}`, time.Now().UnixNano()), metav1.PatchOptions{})
		return err
	},
}

// failures returns how many expressions of the policy, or conditions of the webhook, have failed so
// far. Such a failure lets the request through.
func failures(t testing.TB, l *lab.Lab) (out []string) {
	t.Helper()
	metrics, err := l.Client().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	require.NoError(t, err)
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, "apiserver_validating_admission_policy_check_total{") && strings.Contains(line, `enforcement_action="allow"`) ||
			strings.HasPrefix(line, "apiserver_admission_match_condition_evaluation_errors_total") {
			out = append(out, line)
		}
	}
	return out
}

// asKubelet returns a client of the crowded node's kubelet.
func asKubelet(t testing.TB, l *lab.Lab) kubernetes.Interface {
	t.Helper()
	return as(t, l, requests.User{Name: "system:node:" + crowded, Groups: []string{"system:nodes"}})
}

// TestNoNumberOfKeysGetsPastThePolicy: a kubelet may give its Node as many labels as fit. The API
// server aborts an expression that costs too much, and then lets the request through. That would
// happen here if the cost grew with the square of the number of keys. With more keys than the
// policy searches, heartbeats are allowed, and changes of keys are denied.
func TestNoNumberOfKeysGetsPastThePolicy(t *testing.T) {
	l := lab.Shared(t)
	drydock, kubelet, person := as(t, l, requests.Drydock), asKubelet(t, l), as(t, l, requests.Person)
	before := failures(t, l)
	installPolicy(t, l, "enforce")
	await(t, "the policy", func() bool { return forged(t, l) == "policy" })
	for _, keys := range []int{1000, 4900, 32000} {
		fill(t, drydock, keys)
		for what, write := range kubeletWrites {
			want := ""
			if keys > 5000 && what != "a heartbeat" {
				want = "policy"
			}
			err := write(t.Context(), kubelet.CoreV1().Nodes())
			require.Equal(t, want, denier(err), "%s with %d keys: %v", what, keys, err)
		}
		for who, c := range map[string]kubernetes.Interface{"a kubelet": kubelet, "a person": person} {
			_, err := c.CoreV1().Nodes().Patch(t.Context(), crowded, types.MergePatchType, []byte(`{"metadata":{"annotations":{"repair.drydock.dev/leader":"{}"}}}`), metav1.PatchOptions{})
			require.Equal(t, "policy", denier(err), "no number of keys gets %s past the policy: %v", who, err)
		}
	}
	require.Equal(t, before, failures(t, l), "no expression failed, which would let requests through")
	_, err := person.CoreV1().Nodes().Patch(t.Context(), crowded, types.MergePatchType, []byte(`{"metadata":{"labels":{"l00000":null,"l00001":null}}}`), metav1.PatchOptions{})
	require.NoError(t, err, "a person may remove some")
	fill(t, drydock, 0)
}

// BenchmarkPolicy measures each write of a kubelet without and with the policy, by the number of
// the Node's keys.
func BenchmarkPolicy(b *testing.B) {
	l := lab.Shared(b)
	drydock, nodes := as(b, l, requests.Drydock), asKubelet(b, l).CoreV1().Nodes()
	for _, policy := range []string{"without", "with"} {
		if policy == "with" {
			installPolicy(b, l, "enforce")
			await(b, "the policy", func() bool { return forged(b, l) == "policy" })
		}
		for _, keys := range []int{1000, 4900, 32000} {
			fill(b, drydock, keys)
			for what, write := range kubeletWrites {
				b.Run(fmt.Sprintf("%d keys/%s/%s", keys, what, policy), func(b *testing.B) {
					for b.Loop() {
						if err := write(b.Context(), nodes); err != nil && denier(err) != "policy" {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
	fill(b, drydock, 0)
}
