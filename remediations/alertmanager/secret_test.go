package alertmanager

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"github.com/stretchr/testify/require"
)

// TestWhatProvesWhoDrydockIsStandsInNoError: a replica, a proxy in front of it or a token endpoint
// may repeat Drydock's credentials in an answer, and errors must not have them, whatever their
// length.
func TestWhatProvesWhoDrydockIsStandsInNoError(t *testing.T) {
	t.Parallel()
	const secret = "the/secret+of-drydock"
	encoded := base64.StdEncoding.EncodeToString([]byte("drydock:" + secret))
	tokens := func(answer http.HandlerFunc) config.HTTPClientConfig {
		return config.HTTPClientConfig{OAuth2: &config.OAuth2{ClientID: "drydock", ClientSecret: secret, TokenURL: serve(t, answer)}}
	}
	quotes := func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Header.Get("Authorization"), r.Form.Encode(), strings.Repeat("x", 900<<10))
	}
	quotesAsOAuth := func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":"invalid_client","error_description":%q}`, r.Header.Get("Authorization")+r.Form.Encode()+secret)
	}
	quoted := func(contentType, format string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", strings.ReplaceAll(contentType, "%s", r.Header.Get("Authorization")))
			_, _ = io.WriteString(w, strings.ReplaceAll(format, "%s", r.Header.Get("Authorization")))
		}
	}
	begin := `[{"labels":{"a":"b"},"status":{"state":"active"},"startsAt":"%s` + strings.Repeat("x", 900<<10) + `"}]`
	bearer := func() config.HTTPClientConfig {
		return config.HTTPClientConfig{Authorization: &config.Authorization{Type: "Bearer", Credentials: secret}}
	}
	basic := func() config.HTTPClientConfig {
		return config.HTTPClientConfig{BasicAuth: &config.BasicAuth{Username: "drydock", Password: secret}}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		cfg    config.HTTPClientConfig
		want   string
	}{
		"a token endpoint that quotes the request": {quoted("application/json", "[]"), tokens(quotes), "the OAuth 2 token endpoint answered 401 Unauthorized; check client_id"},
		"a token endpoint's own error":             {quoted("application/json", "[]"), tokens(quotesAsOAuth), "the OAuth 2 token endpoint answered 401 Unauthorized, invalid_client; check client_id"},
		"a type of content, bearer":                {quoted("x/%s", ""), bearer(), `content of type "x/Bearer [secret]"`},
		"a type of content, basic":                 {quoted("x/%s", ""), basic(), `content of type "x/Basic [secret]"`},
		"a time that is none, bearer":              {quoted("application/json", begin), bearer(), "Bearer [secret]"},
		"a time that is none, basic":               {quoted("application/json", begin), basic(), "Basic [secret]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := only(t, Options{URLs: []string{serve(t, c.answer)}, HTTPConfig: c.cfg, Timeout: time.Minute}).Err
			require.ErrorContains(t, err, c.want)
			require.Less(t, len(err.Error()), 600)
			for _, shown := range []string{secret, encoded} {
				require.NotContains(t, err.Error(), shown[:8])
				require.NotContains(t, err.Error(), shown[len(shown)-8:])
			}
		})
	}
}
