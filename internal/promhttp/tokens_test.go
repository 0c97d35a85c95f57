package promhttp

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/redact"
)

// TestARedirectOfATokenEndpointIsNotFollowed: 307 and 308 would send the client's secret to another
// host.
func TestARedirectOfATokenEndpointIsNotFollowed(t *testing.T) {
	t.Parallel()
	serve := func(h http.HandlerFunc) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	var stolen, redirect atomic.Int32
	thief := serve(func(http.ResponseWriter, *http.Request) { stolen.Add(1) })
	endpoint := serve(func(w http.ResponseWriter, r *http.Request) {
		if code := int(redirect.Load()); code != 0 {
			http.Redirect(w, r, thief, code)
			return
		}
		_, secret, _ := r.BasicAuth()
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"token-for-%s","token_type":"bearer","expires_in":1}`, secret) // each request needs a new one
	})
	var authorization string
	target := serve(func(_ http.ResponseWriter, r *http.Request) { authorization = r.Header.Get("Authorization") })
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("first"), 0o600))
	rt, err := withTokens(http.DefaultTransport, &config.OAuth2{ClientID: "drydock", TokenURL: endpoint}, config.NewFileSecret(file), time.Minute, new(net.Dialer).DialContext)
	require.NoError(t, err)
	ask := func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
		require.NoError(t, err)
		resp, err := rt.RoundTrip(req)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	require.NoError(t, ask(), "the control")
	require.Equal(t, "Bearer token-for-first", authorization)
	for _, code := range []int{301, 302, 303, 307, 308} {
		redirect.Store(int32(code))
		require.ErrorContains(t, redact.TokenRefused(ask()), fmt.Sprintf("the OAuth 2 token endpoint answered %d", code))
	}
	require.Zero(t, stolen.Load())
	redirect.Store(0)
	require.NoError(t, os.WriteFile(file, []byte("second"), 0o600))
	require.NoError(t, ask())
	require.Equal(t, "Bearer token-for-second", authorization, "a new secret counts at once")
}
