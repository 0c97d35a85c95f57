package admission

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/lab"
)

// TestASecondDrydockChangesNothingUntilTheFirstIsGone: the second one has only the rights of the
// chart. It creates no ledger, and reports why.
func TestASecondDrydockChangesNothingUntilTheFirstIsGone(t *testing.T) {
	l := lab.Shared(t)
	token, err := l.PrepareDrydock(t.Context())
	require.NoError(t, err)
	election := map[string]any{"cluster": map[string]any{"namespace": "kube-system", "name": "drydock"}}
	start := func(name string) *lab.Drydock {
		require.NoError(t, l.InstallChart(t.Context(), name, name, map[string]any{
			"config": map[string]any{"mode": "observe", "leaderElection": election}, "admission": map[string]any{"policy": map[string]any{"enabled": false}},
		}))
		d, err := l.StartDrydock(t.Context(), token, lab.DrydockOptions{Name: name, Namespace: name, Config: map[string]any{
			"mode": "observe", "alertmanager": map[string]any{"urls": []any{"http://127.0.0.1:9"}}, "leaderElection": election,
		}})
		require.NoError(t, err)
		t.Cleanup(d.Kill)
		return d
	}
	holder := func() string {
		lease, err := l.Client().CoordinationV1().Leases("kube-system").Get(t.Context(), "drydock", metav1.GetOptions{})
		require.NoError(t, err)
		return ptr.Deref(lease.Spec.HolderIdentity, "")
	}
	ledger := func(of string) (*corev1.ConfigMap, error) {
		return l.Client().CoreV1().ConfigMaps(of).Get(t.Context(), "drydock-ledger", metav1.GetOptions{})
	}
	has := func(of string) func() bool { return func() bool { _, err := ledger(of); return err == nil } }

	first := start("first")
	await(t, "the first to work", has("first"))
	require.Equal(t, "first/drydock", holder())
	second := start("second")
	await(t, "the second to stand aside", func() bool {
		return strings.Contains(scraped(t, second), `drydock_blind{cause="charge"} 1`)
	})
	log, err := os.ReadFile(second.Log())
	require.NoError(t, err)
	require.Contains(t, string(log), `another Drydock is in charge of the cluster: \"first/drydock\" holds Lease kube-system/drydock`)
	_, err = ledger("second")
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	first.Kill()
	await(t, "the second to take over", has("second"))
	require.Equal(t, "second/drydock", holder())
}

func scraped(t *testing.T, d *lab.Drydock) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.MetricsURL, nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(body)
}
