package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// alert returns an alert as Alertmanager posts it. It has exactly the labels of the shipped rule,
// so it is the same alert as Prometheus's own.
func alert(status, node string) map[string]any {
	return map[string]any{
		"status": status, "startsAt": time.Now().Add(-time.Minute).UTC(), "endsAt": time.Time{}, "fingerprint": "0000000000000000",
		"labels": map[string]string{"alertname": "NodeNotReady", "node": node, "remediation": "node-not-ready", "severity": "critical"},
	}
}

func payload(alerts ...map[string]any) string {
	data, err := json.Marshal(map[string]any{"version": "4", "receiver": "drydock", "status": "firing", "alerts": alerts})
	if err != nil {
		panic(err)
	}
	return string(data)
}

// post posts a body as Alertmanager does.
func (y *yard) post(d *lab.Drydock, body string) (int, string) {
	y.t.Helper()
	secret, err := os.ReadFile(d.TokenFile)
	require.NoError(y.t, err)
	req, err := http.NewRequestWithContext(y.t.Context(), http.MethodPost, d.ReceiverURL, strings.NewReader(body))
	require.NoError(y.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(secret)))
	res, err := http.DefaultClient.Do(req)
	require.NoError(y.t, err)
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	require.NoError(y.t, err)
	return res.StatusCode, string(answer)
}

// taken posts as Alertmanager does, again after a 503. Drydock answers 503 until the first leader
// is in charge of the cluster. It returns the body of the answer 200.
func (y *yard) taken(d *lab.Drydock, body string) (answer string) {
	y.t.Helper()
	var code int
	require.Eventually(y.t, func() bool {
		code, answer = y.post(d, body)
		return code != http.StatusServiceUnavailable
	}, lab.Patience, 50*time.Millisecond)
	require.Equal(y.t, http.StatusOK, code, answer)
	return answer
}

func (y *yard) metrics(d *lab.Drydock) string {
	y.t.Helper()
	req, err := http.NewRequestWithContext(y.t.Context(), http.MethodGet, d.MetricsURL, nil)
	require.NoError(y.t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(y.t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(y.t, err)
	return string(text)
}

// measures waits until the program's metrics contain the line. They follow at the end of the pass
// that wrote the Node.
func (y *yard) measures(d *lab.Drydock, line string) {
	y.t.Helper()
	require.Eventually(y.t, func() bool { return strings.Contains(y.metrics(d), line) }, lab.Patience, 50*time.Millisecond, line)
}

func (y *yard) annotate(node, key, value string) {
	y.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	_, err := y.lab.Client().CoreV1().Nodes().Patch(y.t.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(y.t, err)
}

func (y *yard) unannotate(node, key string) {
	y.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, key)
	_, err := y.lab.Client().CoreV1().Nodes().Patch(y.t.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(y.t, err)
}

// startAlertmanagers starts the Alertmanagers again that a test has stopped.
func (y *yard) startAlertmanagers() {
	y.t.Helper()
	for i := range 2 {
		select {
		case <-y.lab.Process(fmt.Sprintf("alertmanager-%d", i)).Done():
			require.NoError(y.t, y.lab.StartAlertmanager(context.WithoutCancel(y.t.Context()), i))
		default:
		}
	}
}

// killOn kills Drydock when the API server has written that phase on the node, before Drydock gets
// the answer.
func killOn(d *lab.Drydock, node string, phase remediations.Phase) func(*http.Response) lab.Verdict {
	return func(res *http.Response) lab.Verdict {
		if res.Request.Method != http.MethodPatch || res.Request.URL.Query().Has("dryRun") || !strings.HasSuffix(res.Request.URL.Path, "/nodes/"+node) {
			return lab.Pass
		}
		body, err := io.ReadAll(res.Body)
		res.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil {
			return lab.Pass
		}
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if n, ok := o.(*corev1.Node); err != nil || !ok || n.Labels[remediations.PhaseLabel] != string(phase) {
			return lab.Pass
		}
		d.Kill()
		return lab.Reset
	}
}

// machines returns the provider's machines with these options.
func (y *yard) machines(o lab.CivoOptions) {
	y.t.Helper()
	y.civo.Close()
	var err error
	y.civo, err = y.lab.StartCivo(y.t.Context(), o)
	require.NoError(y.t, err)
	y.t.Cleanup(y.civo.Close)
}

func clientOf(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(c)
	require.NoError(t, err)
	return client
}

func second[T any](_ T, err error) error { return err }
