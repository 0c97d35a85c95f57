package kubeapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// TestNoErrorQuotesAKubeconfigsPassword: the password may be part of the server's address, and the
// URL parser quotes an address that it cannot read.
func TestNoErrorQuotesAKubeconfigsPassword(t *testing.T) {
	t.Parallel()
	const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}], users: [{name: u, user: {token: t}}],
clusters: [{name: k, cluster: {server: %q}}]}`
	for server, want := range map[string]string{
		"https://u:the-password%zz@host": "the API server's address is not a URL",
		"https://u:the-password@host":    "the API server's address has credentials in it",
		"https://u:the-password@ho st":   "the API server's address is not a URL",
	} {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, kubeconfig, server), 0o600))
		c, err := New(Options{Kubeconfig: path, Server: "the management cluster", APIVersion: "v1"})
		require.NoError(t, err)
		_, err = List[corev1.Node](t.Context(), c, "nodes", "Node", nil)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "the-password")
		_, err = New(Options{REST: &rest.Config{Host: server}, APIVersion: "v1"})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "the-password")
	}
}

// TestAPasswordThatTheServerRepeatsIsNotShown, in any spelling.
func TestAPasswordThatTheServerRepeatsIsNotShown(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","status":"Failure","code":403,"message":"%s %s is wrong"}`, r.Header.Get("Authorization"), password)
	}))
	t.Cleanup(server.Close)
	c, err := New(Options{REST: &rest.Config{Host: server.URL, Username: "drydock", Password: "the-password"}, APIVersion: "v1"})
	require.NoError(t, err)
	_, err = List[corev1.Node](t.Context(), c, "nodes", "Node", nil)
	require.ErrorContains(t, err, "Basic [secret] [secret] is wrong")
}
