package kit

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"drydock.dev/drydock/internal/bounded"
)

type way func() (*http.Response, error)

func (w way) RoundTrip(*http.Request) (*http.Response, error) { return w() }

// TestATokenEndpointsTextIsNotQuoted: some repeat the client's secret in what they answer.
func TestATokenEndpointsTextIsNotQuoted(t *testing.T) {
	t.Parallel()
	refused := &oauth2.RetrieveError{Response: &http.Response{StatusCode: http.StatusUnauthorized}, Body: []byte("secret s3cr3t is wrong")}
	ask := func(err error) string {
		return Exchange(way(func() (*http.Response, error) { return nil, err }), &http.Request{}, bounded.Limits{}).Err.Error()
	}
	require.NotContains(t, ask(refused), "s3cr3t")
	require.Contains(t, ask(refused), "the OAuth 2 token endpoint answered 401")
	require.Contains(t, ask(errors.New("no route")), "no route", "the control")
}
