package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// Each of these tests shows that nothing happens. Then it removes the cause in the same lab, and
// Drydock acts.

func TestAForgedPostIsOnlyALook(t *testing.T) {
	y := newYard(t)
	d := y.run(lab.DrydockOptions{Config: config(policy(nil))})

	require.JSONEq(t, `{"accepted":1,"ignored":0}`, y.taken(d, payload(alert("firing", "node-4"))))
	r := y.held("node-4", remediations.ReasonAlertUnconfirmed)
	require.Contains(t, r.Hold.Message, "none of the 2 Alertmanagers")
	require.Zero(t, y.reboots("node-4"))
	y.awaitEvent("node-4", "RepairHeld", "AlertUnconfirmed: ")

	y.fail("node-4") // now Alertmanager has the alert, too
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-4").Outcome)
	require.Equal(t, 1, y.reboots("node-4"))
}

func TestObserveModeOnlySaysWhatItWouldDo(t *testing.T) {
	y := newYard(t)
	observing := config(policy(nil))
	observing["mode"] = "observe"
	d := y.run(lab.DrydockOptions{Config: observing})
	before := y.node("node-5")

	y.fail("node-5")
	r := y.held("node-5", remediations.ReasonObserving)
	require.Contains(t, r.Hold.Message, "would reboot node-5 now")
	y.awaitEvent("node-5", "RepairHeld", "Observing: would reboot node-5 now")
	require.Empty(t, y.civo.Calls(), "the provider was not even asked")
	after := y.node("node-5")
	require.Equal(t, before.Spec.Unschedulable, after.Spec.Unschedulable)
	require.Equal(t, before.Status.NodeInfo, after.Status.NodeInfo)

	d.Kill()
	y.run(lab.DrydockOptions{Config: config(policy(nil)), Name: "drydock-enforcing"})
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-5").Outcome)
	require.Equal(t, 1, y.reboots("node-5"))
}

func TestTwoAlertmanagers(t *testing.T) {
	y := newYard(t)
	d := y.run(lab.DrydockOptions{Config: config(policy(nil))})
	t.Cleanup(y.startAlertmanagers)

	y.lab.StopAlertmanager(0)
	y.fail("node-6")
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-6").Outcome, "one of two is enough")
	require.Equal(t, 1, y.reboots("node-6"))

	y.lab.StopAlertmanager(1)
	y.fail("node-7")
	y.taken(d, payload(alert("firing", "node-7")))
	y.ledger("all is held", func(l *ledger.Ledger) bool {
		return strings.Contains(l.Status.Holds[remediations.ReasonAlertUnconfirmed], "none of 2 Alertmanagers answered")
	})
	require.Zero(t, y.reboots("node-7"))

	require.NoError(t, y.lab.StartAlertmanager(t.Context(), 1))
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-7").Outcome, "one is back, and it goes on")
	require.Equal(t, 1, y.reboots("node-7"))
}

func TestBadPostsChangeNothingAndLoseNothing(t *testing.T) {
	y := newYard(t)
	d := y.run(lab.DrydockOptions{Config: config(policy(nil))})
	y.taken(d, payload(alert("resolved", "node-8"))) // from here on, the counters count each post once

	for name, c := range map[string]struct {
		body string
		code int
		says string
	}{
		"malformed JSON":  {`{"version":"4","alerts":[`, 400, ""},
		"another version": {`{"version":"3","alerts":[]}`, 400, "version"},
		"over the limit":  {`{"version":"4","alerts":[],"externalURL":"` + strings.Repeat("x", 5<<20) + `"}`, 413, ""},
	} {
		code, body := y.post(d, c.body)
		require.Equal(t, c.code, code, name)
		require.Contains(t, body, c.says, name)
		require.Contains(t, body, `"error"`, name)
	}
	y.fail("node-8")
	hostile := alert("firing", "node-9; reboot")
	hostile["labels"].(map[string]string)["node"] = "node-9$(reboot)"
	noLabel := alert("firing", "node-9")
	delete(noLabel["labels"].(map[string]string), "node")
	require.JSONEq(t, `{"accepted":1,"ignored":3}`, y.taken(d, payload(hostile, noLabel, alert("firing", "no-such-node"), alert("firing", "node-8"))))
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-8").Outcome, "the good one among them is not lost")
	metrics := y.metrics(d)
	require.Contains(t, metrics, `drydock_alerts_received_total{result="no_target"} 2`)
	require.Contains(t, metrics, `drydock_alerts_received_total{result="unknown_node"} 1`)
	require.Contains(t, metrics, `drydock_posts_total{code="413"} 1`)
	require.Len(t, y.civo.Done("hard_reboots"), 1)
}

func TestPostsWithoutTheTokenAreRefused(t *testing.T) {
	y := newYard(t)
	d := y.run(lab.DrydockOptions{Config: config(policy(nil))})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.ReceiverURL, strings.NewReader(payload(alert("firing", "node-10"))))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer wrong")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	require.Empty(t, remediations.AlertsOn(y.node("node-10").Annotations))

	y.taken(d, payload(alert("firing", "node-10")))
	require.Eventually(t, func() bool { return len(remediations.AlertsOn(y.node("node-10").Annotations)) > 0 }, lab.Patience, 20*time.Millisecond, "queued at the 200, and written at once")
}

// The roles of the chart let Drydock do its work, as the other tests show, and nothing else.
func TestTheChartsRolesGiveNoMoreThanNeeded(t *testing.T) {
	y := newYard(t)
	file, err := y.lab.ServiceAccountKubeconfig(t.Context(), lab.Namespace, "drydock", "")
	require.NoError(t, err)
	client := clientOf(t, file)
	_, err = client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	for what, err := range map[string]error{
		"delete a node": client.CoreV1().Nodes().Delete(t.Context(), "node-11", metav1.DeleteOptions{}),
		"read secrets":  second(client.CoreV1().Secrets(lab.Namespace).List(t.Context(), metav1.ListOptions{})),
		"delete a pod":  client.CoreV1().Pods("default").Delete(t.Context(), "any", metav1.DeleteOptions{}),
		"watch pods":    second(client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})),
		"watch leases":  second(client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Watch(t.Context(), metav1.ListOptions{})),
	} {
		require.ErrorContains(t, err, "forbidden", what)
	}
}

// If a file is missing or a key is unknown, the program names it and does not start.
func TestABadConfigurationDoesNotStart(t *testing.T) {
	y := newYard(t)
	bad := config(policy(map[string]any{"cooldwon": "5m", "proofFor": "soon"}))
	bad["providers"] = map[string]any{"civo": map[string]any{"apiKeyFile": "/nowhere/key"}}
	_, err := y.lab.StartDrydock(t.Context(), y.token, lab.DrydockOptions{Civo: y.civo, Config: bad, Name: "drydock-bad"})
	require.Error(t, err)
	log, readErr := os.ReadFile(y.lab.LogDir() + "/drydock-bad.log")
	require.NoError(t, readErr)
	for _, says := range []string{"drydock-bad.yaml:", "cooldwon", "proofFor", "/nowhere/key"} {
		require.Contains(t, string(log), says)
	}
}
