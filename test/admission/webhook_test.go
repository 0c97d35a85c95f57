package admission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/test/admission/requests"
)

// TestWholeTable sends all requests of the table through the real API server with the policy and
// the webhook's own process.
func TestWholeTable(t *testing.T) {
	l := lab.Shared(t)
	y := newYard(t, l, "enforce")
	unentitled(t, l)
	for _, c := range requests.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			group := "system:masters"
			if c.Unentitled {
				group = changesNodes
			}
			client := newWarned(t, l, c.By.Name, append([]string{group}, c.By.Groups...)...)
			err := client.checked(func() error { return try(t, t.Context(), y.user, client, &c) })
			switch {
			case c.Core:
				require.Equal(t, "policy", denier(err), "%v", err)
			case c.Denied:
				require.Equal(t, "webhook", denier(err), "%v", err)
			default:
				require.Empty(t, denier(err), "%v", err)
				require.Equal(t, c.Warned, client.count() > 0, "%q", client.texts())
			}
		})
	}
}

// TestPeopleDoNotCollide uses the real kubectl. It is denied while a repair is in flight, and
// allowed before, afterwards, and while the repair is only held.
func TestPeopleDoNotCollide(t *testing.T) {
	l := lab.Shared(t)
	y := newYard(t, l, "enforce")
	const n = "n2"
	bound(t, l, "victim", n)
	quiet := func(when string) {
		y.does("cordon", n)
		require.True(t, y.node(n).Spec.Unschedulable, when)
		y.does("uncordon", n)
		require.False(t, y.node(n).Spec.Unschedulable, when)
		y.does("taint", "node", n, "maintenance=yes:NoExecute", "--dry-run=server")
		y.does("drain", n, "--force", "--dry-run=server")
		y.does("delete", "node", n, "--dry-run=server")
	}
	quiet("before")
	y.becomes(n, remediations.PhasePending)
	quiet("while it is only held")

	for _, phase := range []remediations.Phase{remediations.PhaseActing, remediations.PhaseVerifying} {
		y.becomes(n, phase)
		for _, args := range [][]string{{"cordon", n}, {"drain", n, "--force", "--timeout=10s"}, {"delete", "node", n}, {"taint", "node", n, "maintenance=yes:NoExecute"}} {
			out := y.isDenied(args...)
			for _, text := range []string{
				requests.ID, "node-not-ready", "reboot", "is " + string(phase), "since 2026-11-20T21:00:00Z", "by 2026-11-20T21:10:00Z",
				"kubectl drydock status -w", "kubectl annotate node n2 drydock.dev/cancel=" + requests.ID, "kubectl annotate node n2 drydock.dev/break-glass=",
			} {
				require.Contains(t, out, text, "%v", args)
			}
		}
		err := as(t, l, requests.Person).CoreV1().Nodes().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + n})
		require.Equal(t, "policy", denier(err), "all at once: %v", err)
		require.False(t, y.node(n).Spec.Unschedulable)
		require.False(t, slices.ContainsFunc(y.node(n).Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == "maintenance" }))
		_, err = l.Client().CoreV1().Pods("default").Get(t.Context(), "victim", metav1.GetOptions{})
		require.NoError(t, err, "drain evicted after its cordon was refused")
		y.becomes(n, phase, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		y.isDenied("uncordon", n)
	}
	require.NotZero(t, y.metric(`drydock_admission_total{reason="NoExecute",verdict="denied"}`))
	require.NotZero(t, y.metric(`drydock_admission_total{reason="Eviction",verdict="denied"}`))

	// Break-glass allows the changes. The webhook sends no Event about it, because the leader does,
	// and here another replica leads.
	y.becomes(n, remediations.PhaseVerifying)
	y.does("annotate", "node", n, remediations.BreakGlassKey+"=the rack is on fire")
	y.does("cordon", n)
	require.Contains(t, y.isDenied("annotate", "node", n, remediations.HistoryKey+"=[]", "--overwrite"), "Only Drydock writes")
	y.does("drain", n, "--force", "--timeout=60s")
	_, err := l.Client().CoreV1().Pods("default").Get(t.Context(), "victim", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	y.does("taint", "node", n, "maintenance=yes:NoExecute")
	y.does("delete", "node", n)
	require.NoError(t, l.AddNode(t.Context(), lab.NodeSpec{Name: n}))
	y.becomes(n, "")
	quiet("after")
	require.Empty(t, y.events("BreakGlassSet"), "the webhook wrote")
}

// TestObserveModeOnlyWarns, with the real kubectl.
func TestObserveModeOnlyWarns(t *testing.T) {
	l := lab.Shared(t)
	y := newYard(t, l, "observe")
	const n = "n3"
	y.becomes(n, remediations.PhaseVerifying)
	await(t, "a warning", func() bool {
		return strings.Contains(y.does("cordon", n, "--dry-run=server"), "Warning: in enforce mode this would be denied: node n3 is under repair")
	})
	y.does("cordon", n)
	require.True(t, y.node(n).Spec.Unschedulable)
	require.Contains(t, y.does("taint", "node", n, "maintenance=yes:NoExecute"), "Warning: in enforce mode this would be denied")

	y.becomes(n, remediations.PhasePending, func(n *corev1.Node) {
		r := requests.Record(remediations.PhasePending)
		r.Hold = &remediations.Hold{Reason: remediations.ReasonObserving, Message: "would reboot n3 now", Since: requests.Now}
		requests.Put(n, r)
	})
	require.Contains(t, y.does("cordon", n), "Warning: Drydock would reboot n3 now")
	y.becomes(n, "")
}

// TestWebhookGone kills the webhook's process. Nodes can still be updated, and the hard core is
// still denied. What only the webhook knows is allowed, including the evictions of a drain.
func TestWebhookGone(t *testing.T) {
	l := lab.Shared(t)
	y := newYard(t, l, "enforce")
	const n = "n4"
	y.becomes(n, remediations.PhaseVerifying)
	bound(t, l, "left", n)
	y.drydock.Kill()

	y.does("label", "node", n, "team=a")
	kubelet, err := l.NodeClient(n)
	require.NoError(t, err)
	heartbeat(t, kubelet, n)
	for _, args := range [][]string{{"cordon", n}, {"delete", "node", n}, {"label", "node", n, remediations.PhaseLabel + "-"}, {"annotate", "node", n, remediations.NodeRepairKey + "-"}} {
		require.Contains(t, y.isDenied(args...), "ValidatingAdmissionPolicy", "%v", args)
	}
	y.does("taint", "node", n, "maintenance=yes:NoSchedule", "--overwrite")
	require.Contains(t, y.isDenied("drain", n, "--force", "--timeout=60s"), "ValidatingAdmissionPolicy")
	_, err = l.Client().CoreV1().Pods("default").Get(t.Context(), "left", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "drain evicts after its cordon was refused: the hole that the opt-in closes, and only while a replica answers; %v", err)

	// Deleting both objects always makes the cluster usable again.
	removeAdmission(t, l)
	y.does("cordon", n)
	y.does("annotate", "node", n, remediations.NodeRepairKey+"-")
	y.becomes(n, "")
}

// TestConfigurationThatIsDeletedStaysDeleted: Drydock continues, and does not create the webhook
// configuration again.
func TestConfigurationThatIsDeletedStaysDeleted(t *testing.T) {
	l := lab.Shared(t)
	y := newYard(t, l, "enforce")
	removeAdmission(t, l)
	patch := []byte(`{"metadata":{"annotations":{"touched":"true"}}}`) // this change makes the rotator check again
	_, err := l.Client().CoreV1().Secrets(lab.Namespace).Patch(t.Context(), "drydock-webhook", types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	await(t, "the rotator to look for the configuration", func() bool {
		log, err := os.ReadFile(filepath.Join(l.LogDir(), "drydock.log"))
		require.NoError(t, err)
		return strings.Contains(string(log), "Webhook not found")
	})
	_, err = l.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "drydock", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	select {
	case <-y.drydock.Done():
		require.Fail(t, "Drydock ended", y.drydock.LogEnd())
	default:
	}
	require.Zero(t, y.metric("drydock_leader"))
}

// bound creates a pod that runs on the node.
func bound(t *testing.T, l *lab.Lab, name, node string) {
	t.Helper()
	pods := l.Client().CoreV1().Pods("default")
	await(t, "the namespace's service account", func() bool {
		_, err := l.Client().CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "none"}}, TerminationGracePeriodSeconds: new(int64)},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	await(t, "the pod to run", func() bool {
		p, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		return p.Status.Phase == corev1.PodRunning
	})
}
