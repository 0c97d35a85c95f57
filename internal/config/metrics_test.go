package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMetricsNeedNoTokenByDefault, and TLS does not need authentication.
func TestMetricsNeedNoTokenByDefault(t *testing.T) {
	c, _ := mustLoad(t, base)
	require.Equal(t, Metrics{Listen: ":8080"}, c.Metrics)
	files := TLS{CertFile: "/c/tls.crt", KeyFile: "/c/tls.key"}
	c, _ = mustLoad(t, base+"metrics: {tls: {certFile: /c/tls.crt, keyFile: /c/tls.key}}\n")
	require.Equal(t, Metrics{Listen: ":8080", TLS: files}, c.Metrics)
	c, _ = mustLoad(t, base+"metrics: {authenticate: true, tls: {certFile: /c/tls.crt, keyFile: /c/tls.key}}\n")
	require.Equal(t, Metrics{Listen: ":8080", TLS: files, Authenticate: true}, c.Metrics)
}
