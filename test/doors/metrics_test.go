package doors

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
)

// servingFiles writes the certificate of a test server, which is for 127.0.0.1, and returns a client that trusts it.
func servingFiles(t *testing.T) (certFile, keyFile string, client *http.Client) {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	pair := s.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	client = s.Client()
	client.Timeout = 20 * time.Second
	return certFile, keyFile, client
}

// scrape returns the answer's status and text. An empty token: none is sent.
func scrape(t *testing.T, client *http.Client, url, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(r)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, res.StatusCode == http.StatusOK, strings.Contains(string(text), "drydock_build_info{"), "%d %.200s", res.StatusCode, text)
	return res.StatusCode, string(text)
}

// TestOnlyWhomTheAPIServerKnowsReadsTheMetrics where the chart's value is set, with the rights that the chart gives to Drydock
// and to Prometheus. The control: without it anybody does.
func TestOnlyWhomTheAPIServerKnowsReadsTheMetrics(t *testing.T) {
	l := lab.Shared(t)
	values := map[string]any{"config": map[string]any{"mode": "enforce"}, "admission": map[string]any{"policy": map[string]any{"enabled": false}}}
	tokenFile, err := l.PrepareDrydockWith(t.Context(), values)
	require.NoError(t, err)
	alertmanager := map[string]any{"urls": []any{"http://127.0.0.1:9"}}
	open, err := l.StartDrydock(t.Context(), tokenFile, lab.DrydockOptions{Config: map[string]any{"alertmanager": alertmanager}})
	require.NoError(t, err)
	t.Cleanup(open.Kill)
	code, _ := scrape(t, http.DefaultClient, open.MetricsURL, "")
	require.Equal(t, http.StatusOK, code)
	open.Kill()

	var reviews atomic.Int64
	var away atomic.Bool
	proxy, err := l.NewProxy()
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	proxy.Before(func(r *http.Request) lab.Verdict {
		if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
			reviews.Add(1)
		}
		if away.Load() {
			return lab.Unavailable
		}
		return lab.Pass
	})
	certFile, keyFile, client := servingFiles(t)
	d, err := l.StartDrydock(t.Context(), tokenFile, lab.DrydockOptions{Name: "asks-who-scrapes", Server: proxy.URL(), Config: map[string]any{
		"alertmanager": alertmanager,
		"metrics":      map[string]any{"authenticate": true, "tls": map[string]any{"certFile": certFile, "keyFile": keyFile}},
	}})
	require.NoError(t, err)
	t.Cleanup(d.Kill)
	url := strings.Replace(d.MetricsURL, "http://", "https://", 1)
	account := func(name string) string {
		token, err := l.ServiceAccountToken(t.Context(), "monitoring", name)
		require.NoError(t, err)
		return token
	}
	prometheus := account("prometheus")
	code, _ = scrape(t, client, url, prometheus)
	require.Equal(t, http.StatusServiceUnavailable, code, "Drydock itself may not ask")

	values["metrics"] = map[string]any{"authentication": map[string]any{"enabled": true, "secret": "drydock-metrics-tls"}}
	require.NoError(t, l.InstallChart(t.Context(), "drydock", lab.Namespace, values))
	require.Eventually(t, func() bool {
		code, text := scrape(t, client, url, prometheus)
		return code == http.StatusForbidden && strings.Contains(text, `user "system:serviceaccount:monitoring:prometheus" may not get /metrics`)
	}, lab.Patience, 250*time.Millisecond)
	bindings := l.Client().RbacV1().ClusterRoleBindings()
	_, err = bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus-scrapes"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "drydock-metrics"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "monitoring", Name: "prometheus"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = bindings.Delete(context.WithoutCancel(t.Context()), "prometheus-scrapes", metav1.DeleteOptions{})
	})
	require.Eventually(t, func() bool {
		code, _ := scrape(t, client, url, prometheus)
		return code == http.StatusOK
	}, lab.Patience, 250*time.Millisecond)

	for what, token := range map[string]string{"anonymous": "", "forged": "forged", "another cluster's": prometheus + "x"} {
		code, _ = scrape(t, client, url, token)
		require.Equal(t, http.StatusUnauthorized, code, what)
	}
	code, _ = scrape(t, client, url, account("curious"))
	require.Equal(t, http.StatusForbidden, code)
	code, text := scrape(t, http.DefaultClient, d.MetricsURL, "")
	require.Equal(t, http.StatusBadRequest, code, "in clear text: %s", text)

	// A flood of forged tokens.
	before, began := reviews.Load(), time.Now()
	var g errgroup.Group
	for i := range 16 {
		g.Go(func() error {
			for k := range 50 {
				scrape(t, client, url, fmt.Sprintf("forged-%d-%d", i, k))
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	asked, most := reviews.Load()-before, 10+5*int64(time.Since(began)/time.Second+1)
	t.Logf("800 forged tokens in %s: %d reviews, at most %d", time.Since(began), asked, most)
	require.LessOrEqual(t, asked, most)
	code, _ = scrape(t, client, url, prometheus)
	require.Equal(t, http.StatusOK, code)

	late := account("late")
	away.Store(true)
	require.Eventually(t, func() bool { // the flood has used up the rate of reviews
		_, text := scrape(t, client, url, late)
		return strings.Contains(text, "the API server cannot be asked who scrapes")
	}, lab.Patience, 250*time.Millisecond)
	away.Store(false)
	require.Eventually(t, func() bool {
		code, _ := scrape(t, client, url, late)
		return code == http.StatusForbidden
	}, lab.Patience, 250*time.Millisecond)
	code, _ = scrape(t, client, url, prometheus)
	require.Equal(t, http.StatusOK, code)
}
