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

// floods is the number of concurrent scrapes in the flood.
const floods = 16

// servingFiles writes a certificate for a test server on 127.0.0.1, and returns a client that
// trusts it.
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
	client.Timeout = lab.Patience
	client.Transport.(*http.Transport).MaxIdleConnsPerHost = floods // otherwise each request of a flood would begin with a handshake
	return certFile, keyFile, client
}

// scrape returns the answer's status and text. The text contains the metrics only with the status
// 200. An empty token is not sent.
func scrape(t *testing.T, client *http.Client, url, token string) (int, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, "", err
	}
	if figures := strings.Contains(string(text), "drydock_build_info{"); figures != (res.StatusCode == http.StatusOK) {
		t.Errorf("status %d, with figures: %t: %.200s", res.StatusCode, figures, text)
	}
	return res.StatusCode, string(text), nil
}

// scraped waits for this status. It tolerates lost connections, and a Drydock that cannot ask the
// API server for some time. Any other status fails the test.
func scraped(t *testing.T, client *http.Client, url, token string, want int, why string) {
	t.Helper()
	code, text, err := scrape(t, client, url, token)
	for end := time.Now().Add(lab.Patience); code != want; code, text, err = scrape(t, client, url, token) {
		require.True(t, (err != nil || code == http.StatusServiceUnavailable) && time.Now().Before(end), "%s: %d %.200s %v", why, code, text, err)
		<-time.After(250 * time.Millisecond)
	}
}

// TestOnlyUsersOfTheAPIServerReadTheMetrics if the chart's value is set. Drydock and Prometheus
// have the rights that the chart gives. The control: without the value, anybody can read the
// metrics.
func TestOnlyUsersOfTheAPIServerReadTheMetrics(t *testing.T) {
	l := lab.Shared(t)
	values := map[string]any{"config": map[string]any{"mode": "enforce"}, "admission": map[string]any{"policy": map[string]any{"enabled": false}}}
	tokenFile, err := l.PrepareDrydockWith(t.Context(), values)
	require.NoError(t, err)
	alertmanager := map[string]any{"urls": []any{"http://127.0.0.1:9"}}
	open, err := l.StartDrydock(t.Context(), tokenFile, lab.DrydockOptions{Config: map[string]any{"alertmanager": alertmanager}})
	require.NoError(t, err)
	t.Cleanup(open.Kill)
	scraped(t, http.DefaultClient, open.MetricsURL, "", http.StatusOK, "anybody")
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
	scraped(t, client, url, prometheus, http.StatusServiceUnavailable, "Drydock itself may not ask")

	values["metrics"] = map[string]any{"authentication": map[string]any{"enabled": true, "secret": "drydock-metrics-tls"}}
	require.NoError(t, l.InstallChart(t.Context(), "drydock", lab.Namespace, values))
	require.Eventually(t, func() bool {
		code, text, _ := scrape(t, client, url, prometheus)
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
		code, _, _ := scrape(t, client, url, prometheus)
		return code == http.StatusOK
	}, lab.Patience, 250*time.Millisecond)

	for what, token := range map[string]string{"anonymous": "", "forged": "forged", "another cluster's": prometheus + "x"} {
		scraped(t, client, url, token, http.StatusUnauthorized, what)
	}
	scraped(t, client, url, account("curious"), http.StatusForbidden, "curious")
	scraped(t, http.DefaultClient, d.MetricsURL, "", http.StatusBadRequest, "in clear text")

	// A flood of forged tokens.
	before, began := reviews.Load(), time.Now()
	var g errgroup.Group
	for i := range floods {
		g.Go(func() error {
			for k := range 50 {
				_, _, _ = scrape(t, client, url, fmt.Sprintf("forged-%d-%d", i, k)) // only the reviews of the tokens matter
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	asked, most := reviews.Load()-before, 10+5*int64(time.Since(began)/time.Second+1)
	t.Logf("800 forged tokens in %s: %d reviews, at most %d", time.Since(began), asked, most)
	require.Positive(t, asked)
	require.LessOrEqual(t, asked, most)
	scraped(t, client, url, prometheus, http.StatusOK, "prometheus, after the flood")

	late := account("late")
	away.Store(true)
	require.Eventually(t, func() bool { // wait until Drydock may ask for reviews again, because the flood has used up their rate
		_, text, _ := scrape(t, client, url, late)
		return strings.Contains(text, "the API server did not answer the review of this token")
	}, lab.Patience, 250*time.Millisecond)
	away.Store(false)
	require.Eventually(t, func() bool {
		code, _, _ := scrape(t, client, url, late)
		return code == http.StatusForbidden
	}, lab.Patience, 250*time.Millisecond)
	scraped(t, client, url, prometheus, http.StatusOK, "prometheus, in the end")
}
