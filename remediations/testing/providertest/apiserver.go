package providertest

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// APIServer returns the options for a provider whose backend is a real API server, which the
// backend calls as the administrator of config. conflict is the server's reason in a 409 answer:
// the object already exists, or has changed.
func APIServer(t testing.TB, config *rest.Config, conflict metav1.StatusReason) HTTPOptions {
	t.Helper()
	admin, err := rest.TransportFor(config)
	require.NoError(t, err)
	server, err := url.Parse(config.Host)
	require.NoError(t, err)
	return HTTPOptions{
		Handler: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(server)
				r.Out.Header.Del("Authorization") // the backend's requests are the administrator's, not the provider's user's
			},
			Transport: admin, ErrorLog: log.New(io.Discard, "", 0),
		},
		Changes: func(r *http.Request) bool { return r.Method != http.MethodGet },
		Error: func(status int, text string) (string, string) {
			body, _ := json.Marshal(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(status), Message: text,
				Reason: map[int]metav1.StatusReason{404: metav1.StatusReasonNotFound, 409: conflict}[status],
			})
			return "", string(body)
		},
	}
}
