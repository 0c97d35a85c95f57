package kit

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"drydock.dev/drydock/internal/bounded"
)

type way func() (*http.Response, error)

func (w way) RoundTrip(*http.Request) (*http.Response, error) { return w() }

// TestATokenEndpointsTextIsNotQuoted: some endpoints repeat the client's secret in their answer.
func TestATokenEndpointsTextIsNotQuoted(t *testing.T) {
	t.Parallel()
	refused := &oauth2.RetrieveError{Response: &http.Response{StatusCode: http.StatusUnauthorized}, Body: []byte("secret s3cr3t is wrong")}
	ask := func(err error) string {
		return Exchange(way(func() (*http.Response, error) { return nil, err }), &http.Request{}, bounded.Limits{}, nil).Err.Error()
	}
	require.NotContains(t, ask(refused), "s3cr3t")
	require.Contains(t, ask(refused), "the OAuth 2 token endpoint answered 401")
	require.Contains(t, ask(errors.New("no route")), "no route", "the control")
}

// TestAnExchangeSaysWhetherItsRequestLeft: a request that its gate stopped did nothing, and the
// error says so. A request that was sent may have been carried out, even without an answer. Both
// are shown in a preview.
func TestAnExchangeSaysWhetherItsRequestLeft(t *testing.T) {
	t.Parallel()
	no := errors.New("no longer the leader")
	for _, forbids := range []error{no, nil} {
		address, _ := listening(t)
		var shown []string
		ctx := Previewing(t.Context(), func(what string) { shown = append(shown, what) })
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/reboot", nil)
		require.NoError(t, err)
		a := Exchange(&http.Transport{DisableKeepAlives: true}, req, bounded.Limits{}, NewGate(ctx, func() error { return forbids }))
		require.Equal(t, forbids == nil, a.Left)
		require.Error(t, a.Err)
		require.Equal(t, forbids != nil, errors.Is(a.Err, no), "%v", a.Err)
		require.Equal(t, []string{"POST http://" + address + "/reboot"}, shown)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	req, err := http.NewRequestWithContext(over, http.MethodPost, "http://192.0.2.1/", nil)
	require.NoError(t, err)
	require.False(t, Exchange(&http.Transport{}, req, bounded.Limits{}, NewGate(over, nil)).Left, "it had no connection")
}
