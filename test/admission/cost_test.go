package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/test/admission/requests"
)

// crowded is the node whose kubelet gave it so many labels and annotations.
const crowded = "n5"

// crowd gives the Node that many labels and annotations, and a record of Drydock's, so that no expression ends early.
func crowd(t *testing.T, drydock kubernetes.Interface, keys int) {
	t.Helper()
	n, err := drydock.CoreV1().Nodes().Get(t.Context(), crowded, metav1.GetOptions{})
	require.NoError(t, err)
	n.ResourceVersion, n.ManagedFields = "", nil
	n.Labels, n.Annotations = map[string]string{corev1.LabelHostname: crowded}, map[string]string{}
	if keys > 0 {
		n.Annotations[remediations.NodeRepairKey] = requests.Record(remediations.Pending).Encode()
	}
	for i := range keys {
		n.Labels[fmt.Sprintf("l%05x", i)], n.Annotations[fmt.Sprintf("a%05x", i)] = "", ""
	}
	_, err = drydock.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// writes are what a kubelet sends, and how long each takes: the median of five.
func writes(t *testing.T, kubelet kubernetes.Interface) (out map[string]time.Duration, refused bool) {
	t.Helper()
	out = map[string]time.Duration{}
	nodes := kubelet.CoreV1().Nodes()
	for name, write := range map[string]func(i int) error{
		"a heartbeat": func(i int) error {
			body := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Add(time.Duration(i)*time.Second).Format(time.RFC3339))
			_, err := nodes.Patch(t.Context(), crowded, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "status")
			return err
		},
		"an annotation": func(i int) error {
			_, err := nodes.Patch(t.Context(), crowded, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"a00000":"%d"}}}`, time.Now().UnixNano()), metav1.PatchOptions{})
			return err
		},
		"a label": func(i int) error {
			_, err := nodes.Patch(t.Context(), crowded, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"l00000":"%d"}}}`, time.Now().UnixNano()), metav1.PatchOptions{})
			return err
		},
	} {
		var took []time.Duration
		for i := range 5 {
			began := time.Now()
			err := write(i)
			took = append(took, time.Since(began))
			if denier(err) == "policy" && name != "a heartbeat" {
				refused = true
				continue
			}
			require.NoError(t, err, name)
		}
		slices.Sort(took)
		out[name] = took[2]
	}
	return out, refused
}

// failures are how many expressions of the policy, or conditions of the webhook, have failed so
// far, which lets requests through.
func failures(t *testing.T, l *lab.Lab) (out []string) {
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

// TestWhatAPolicyCostsGrowsWithTheKeys, and no faster: a kubelet may give its Node as many labels as fit, and everything that is
// written there takes a little longer. Beyond what the policy searches nothing is searched: heartbeats pass, and keys are
// refused at once.
func TestWhatAPolicyCostsGrowsWithTheKeys(t *testing.T) {
	l := lab.Shared(t)
	drydock := as(t, l, requests.Drydock)
	kubelet := as(t, l, requests.User{Name: "system:node:" + crowded, Groups: []string{"system:nodes"}})
	sizes := []int{1000, 4900, 32000}
	plain, refused := map[int]map[string]time.Duration{}, false
	for _, keys := range sizes {
		crowd(t, drydock, keys)
		plain[keys], refused = writes(t, kubelet)
		require.False(t, refused)
	}
	before := failures(t, l)
	installPolicy(t, l, "enforce")
	await(t, "the policy", func() bool { return forged(t, l) == "policy" })
	for _, keys := range sizes {
		crowd(t, drydock, keys)
		with, refused := writes(t, kubelet)
		for what, took := range with {
			t.Logf("%6d labels and %6d annotations: %-13s %5d ms without the policy, %5d ms with it: %.1f", keys, keys, what,
				plain[keys][what].Milliseconds(), took.Milliseconds(), took.Seconds()/plain[keys][what].Seconds())
			most := 6 * plain[keys][what]
			if what == "a heartbeat" || refused {
				most = 3 * plain[keys][what]
			}
			require.Less(t, took, most+200*time.Millisecond, "%s with %d keys", what, keys)
		}
		require.Equal(t, keys > 5000, refused)
		_, err := kubelet.CoreV1().Nodes().Patch(t.Context(), crowded, types.MergePatchType, []byte(`{"metadata":{"annotations":{"repair.drydock.dev/leader":"{}"}}}`), metav1.PatchOptions{})
		require.Equal(t, "policy", denier(err), "no number of keys gets a kubelet past the policy: %v", err)
		_, err = as(t, l, requests.Person).CoreV1().Nodes().Patch(t.Context(), crowded, types.MergePatchType, []byte(`{"metadata":{"annotations":{"repair.drydock.dev/leader":"{}"}}}`), metav1.PatchOptions{})
		require.Equal(t, "policy", denier(err), "nor anybody else: %v", err)
	}
	require.Equal(t, before, failures(t, l), "no expression failed, which would let requests through")
	_, err := as(t, l, requests.Person).CoreV1().Nodes().Patch(t.Context(), crowded, types.MergePatchType, []byte(`{"metadata":{"labels":{"l00000":null,"l00001":null}}}`), metav1.PatchOptions{})
	require.NoError(t, err, "a person may remove some")
	crowd(t, drydock, 0)
}
