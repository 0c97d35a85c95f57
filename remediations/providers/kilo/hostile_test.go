package kilo

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	promconfig "github.com/prometheus/common/config"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// TestWhatProvesWhoDrydockIsStandsInNoSentence: Prometheus, or a proxy in front of it, may quote
// the request with its credentials.
func TestWhatProvesWhoDrydockIsStandsInNoSentence(t *testing.T) {
	const token, password = "the-bearer-token-of-drydock", "the/password+of-drydock"
	quoted := func(format string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			sent := r.Header.Get("Authorization")
			if strings.HasSuffix(format, "422") {
				w.WriteHeader(http.StatusUnprocessableEntity)
				format = strings.TrimSuffix(format, "422")
			}
			_, _ = fmt.Fprintf(w, format, sent)
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"in an error":   quoted(`{"status":"error","error":"%s is refused"}422`),
		"in a warning":  quoted(`{"status":"success","warnings":["%s is odd"],"data":{"resultType":"matrix","result":[]}}`),
		"as the result": quoted(`{"status":"success","data":{"resultType":"%s"}}`),
	} {
		for kind, cfg := range map[string]promconfig.HTTPClientConfig{
			"bearer": {Authorization: &promconfig.Authorization{Type: "Bearer", Credentials: token}},
			"basic":  {BasicAuth: &promconfig.BasicAuth{Username: "drydock", Password: password}},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				s := dark(t, func(o *Options) { o.HTTPConfig = cfg }, east()...)
				s.answer = answer
				said := s.Look(t.Context(), "east").Unknown
				require.Contains(t, said, "[secret]")
				sent := base64.StdEncoding.EncodeToString([]byte("drydock:" + password))
				for _, secret := range []string{token, password, sent} {
					require.NotContains(t, said, secret[len(secret)-8:])
					require.NotContains(t, said, secret[:8])
				}
			})
		}
	}
}

// TestATokenEndpointThatQuotesTheSecretIsNotQuoted: no error shows the secret.
func TestATokenEndpointThatQuotesTheSecretIsNotQuoted(t *testing.T) {
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, "%s %s%s", r.Header.Get("Authorization"), r.FormValue("client_secret"), strings.Repeat("x", 900<<10))
	}))
	t.Cleanup(tokens.Close)
	s := dark(t, func(o *Options) {
		o.HTTPConfig = promconfig.HTTPClientConfig{OAuth2: &promconfig.OAuth2{ClientID: "drydock", ClientSecret: "the-client-secret", TokenURL: tokens.URL}}
	}, east()...)
	said := s.Look(t.Context(), "east").Unknown
	require.Contains(t, said, "the OAuth 2 token endpoint answered 401 Unauthorized")
	require.NotContains(t, said, "the-client-secret")
	require.Less(t, len(said), 1000)
}

// TestAnAnswerTakesNoMoreMemoryThanIsPromised: the memory that an answer keeps is measured after it
// was read. The test is not parallel: the heap is the whole program's.
func TestAnAnswerTakesNoMoreMemoryThanIsPromised(t *testing.T) {
	const promised, n = 64 << 20, 240
	var v view
	for i := range n {
		v = append(v, member{Node: election.Node{Name: fmt.Sprintf("east-%03d", i), Location: "east"}})
	}
	answer := func(series int, one func(i int) string) io.Reader {
		i := -1
		return readers(t, func() string {
			switch i++; {
			case i == 0:
				return `{"status":"success","data":{"resultType":"matrix","result":[` + one(0)
			case i < series:
				return "," + one(i)
			case i == series:
				return `]}}`
			}
			return ""
		})
	}
	usual := func(i int) string {
		src, dst := i/2%n, i/2/n%n
		return fmt.Sprintf(`{"metric":{"node":"east-%03d","dst_node":"east-%03d","proto":"%s","src_location":"east"},"values":[[1,"1"],[2,"1"],[3,"0"]]}`, src, dst, protocols[i%2])
	}
	strange := func(i int) string {
		return fmt.Sprintf(`{"metric":{"node":"x%d","dst_node":"y%d","proto":"tcp"},"values":[[1,"1"]]}`, i, i)
	}
	labels := `{"metric":{"a":"b"` + strings.Repeat(`,"a":"b"`, 500_000) + `},"values":[]}`
	for name, c := range map[string]struct {
		answer  io.Reader
		want    int
		refused string
	}{
		"240 nodes about each other": {answer(2*n*n, usual), n * (n - 1), ""},
		"names that no Node has":     {answer(maxSeries, strange), 0, ""},
		"series without end":         {answer(maxSeries+1, func(int) string { return "{}" }), 0, "more than 150000 series"},
		"labels without end":         {answer(1, func(int) string { return labels }), 0, "an element of the answer"},
		"warnings without end":       {strings.NewReader(`{"warnings":[` + strings.Repeat(`"",`, 5<<20) + `""]}`), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, a := newReader(v, "east", true), &reply{}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			err := a.read(json.NewDecoder(answers.Reader(t.Context(), c.answer)), e.read)
			runtime.GC()
			runtime.ReadMemStats(&after)
			require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(promised))
			if c.refused == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.refused)
				require.ErrorIs(t, err, bounded.ErrTooLarge)
			}
			require.Len(t, e.accounts, c.want)
			runtime.KeepAlive(a)
		})
	}
}

// readers is a text that is made piece by piece while it is read; an empty piece ends it.
func readers(t *testing.T, next func() string) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { _ = r.Close() })
	go func() {
		for piece := next(); piece != ""; piece = next() {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
		}
		_ = w.Close()
	}()
	return r
}
