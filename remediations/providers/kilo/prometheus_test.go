package kilo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// patience is the time limit for a Prometheus that never answers: long enough for one that does, on
// a busy machine.
const patience = 5 * time.Second

// TestAPrometheusWithABadAnswerIsNamedAndGivesNoData: nothing is moved, and the hold names the
// Prometheus.
func TestAPrometheusWithABadAnswerIsNamedAndGivesNoData(t *testing.T) {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"500": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "the server answered 500 Internal Server Error"},
		"401": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, "the server answered 401 Unauthorized"},
		"422 in words": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(422)
			_, _ = io.WriteString(w, `{"status":"error","errorType":"timeout","error":"query timed out"}`)
		}, "the server answered 422 Unprocessable Entity: query timed out"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "redirects are not followed"},
		"a hang": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-over:
			case <-r.Context().Done():
			}
		}, "no complete answer within " + patience.String()},
		"half an answer, then a hang": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"status":"success","data":`)
			w.(http.Flusher).Flush()
			select {
			case <-over:
			case <-r.Context().Done():
			}
		}, "no complete answer within " + patience.String()},
		"nonsense":     {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, ""},
		"another JSON": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"items":[]}`) }, ""},
		"nothing":      {func(http.ResponseWriter, *http.Request) {}, ""},
		"a vector": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
		}, `the answer has the result type "vector"`},
		"a part": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"success","warnings":["store is\u001b[2J down"],"data":{"resultType":"matrix","result":[]}}`)
		}, "the answer may be incomplete: store is"},
		"a part, as VictoriaMetrics says it": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"success","isPartial":true,"data":{"resultType":"matrix","result":[]}}`)
		}, "the answer is incomplete: isPartial is true"},
		"an error with a 200": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"error","error":"it failed"}`)
		}, "it failed"},
		"more after its end": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}{}`)
		}, "the answer has data after its end"},
		"a closed socket": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		}, "EOF"},
		"a huge answer": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"matrix","result":[`)
			for range maxAnswerBytes>>20 + 1 {
				if _, err := w.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil {
					return
				}
			}
			_, _ = io.WriteString(w, `]}}`)
		}, "an element of the answer is longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := patience
			if name == "a huge answer" {
				timeout = 10 * time.Minute // its size ends it, not the clock of a busy machine
			}
			s := dark(t, func(o *Options) { o.Timeout = timeout }, east()...)
			s.answer = c.answer
			saw := s.Look(t.Context(), "east")
			require.Contains(t, saw.Unknown, "querying Prometheus "+s.endpoints[0].String())
			require.Contains(t, saw.Unknown, c.want)
			require.Contains(t, saw.Unknown, "providers.kilo.prometheus")
			require.NotContains(t, saw.Unknown, "\x1b")
			require.Empty(t, saw.Candidates)
			require.False(t, saw.Reached)
			require.Equal(t, "east-0", saw.Leader, "which the API server knows")
		})
	}
}

// TestEveryAddressOfANameIsAskedUntilOneHasData, and that one is queried first from then on.
func TestEveryAddressOfANameIsAskedUntilOneHasData(t *testing.T) {
	m := matrix(map[string]string{"east-1>east-2": "1", "west-0@west>east-2": "1"})
	var asked, hosts []string
	port := "0"
	serve := func(address string, answer http.HandlerFunc) {
		l, err := net.Listen("tcp", net.JoinHostPort(address, port))
		require.NoError(t, err)
		_, port, err = net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, address)
			hosts = append(hosts, r.Host)
			answer(w, r)
		}))
		require.NoError(t, server.Listener.Close())
		server.Listener = l
		server.Start()
		t.Cleanup(server.Close)
	}
	none := func(w http.ResponseWriter, _ *http.Request) { writeMatrix(w, model.Matrix{}) }
	serve("127.0.0.12", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	serve("127.0.0.13", none)
	serve("127.0.0.14", func(w http.ResponseWriter, _ *http.Request) { writeMatrix(w, m) })
	found := []string{"127.0.0.14", "127.0.0.11", "127.0.0.12", "127.0.0.13", "127.0.0.12"}
	o := func(o *Options) {
		o.Prometheus = urls(t, "http://gone.example.com", "http://prometheus.example.com:"+port)
		o.Resolver = func(_ context.Context, host string) ([]string, error) {
			if host == "gone.example.com" {
				return nil, fmt.Errorf("no such host")
			}
			return found, nil
		}
	}
	s := dark(t, o, east()...)
	w, err := askEast(t, s)
	require.NoError(t, err)
	require.False(t, w.none())
	require.Equal(t, []string{"127.0.0.12", "127.0.0.13", "127.0.0.13", "127.0.0.14", "127.0.0.14"}, asked)
	require.Equal(t, []string{"prometheus.example.com:" + port}, slices.Compact(hosts), "the name is asked for at each of its addresses")
	asked = nil
	_, err = askEast(t, s)
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.14", "127.0.0.14"}, asked)

	found = []string{"127.0.0.11", "127.0.0.12", "127.0.0.13"}
	_, err = askEast(t, s)
	for _, want := range []string{"http://gone.example.com:80: no such host", "at 127.0.0.11: dial", "at 127.0.0.12: the server answered 500 Internal Server Error", "at 127.0.0.13 has no probe results"} {
		require.ErrorContains(t, err, want)
	}
	found = nil
	_, err = askEast(t, s)
	require.ErrorContains(t, err, "it has no address")
}

// TestAPrometheusThatKnowsHalfIsTakenWhereNoneKnowsMore: half the data is better than none.
func TestAPrometheusThatKnowsHalfIsTakenWhereNoneKnowsMore(t *testing.T) {
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := model.Matrix{}
		if strings.Contains(r.FormValue("query"), "local") {
			m = matrix(map[string]string{"east-1>east-2": "1"})
		}
		writeMatrix(w, m)
	}))
	t.Cleanup(half.Close)
	s := dark(t, func(o *Options) { o.Prometheus = append(urls(t, half.URL), o.Prometheus...) }, east()...)
	w, err := askEast(t, s)
	require.NoError(t, err)
	require.NotEmpty(t, w.cross, "the second knows all")
	s.cross, s.local, s.last = nil, nil, ""
	w, err = askEast(t, s)
	require.NoError(t, err)
	require.NotEmpty(t, w.local)
	require.Empty(t, w.cross)
}

func TestTheHTTPConfigurationIsUsedAndReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("first\n"), 0o600))
	s := dark(t, func(o *Options) {
		o.HTTPConfig = promconfig.HTTPClientConfig{Authorization: &promconfig.Authorization{Type: "Bearer", CredentialsFile: file}}
	}, east()...)
	var token, path string
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		token, path = r.Header.Get("Authorization"), r.URL.Path
		writeMatrix(w, model.Matrix{})
	}
	s.Look(t.Context(), "east")
	require.Equal(t, "Bearer first", token)
	require.Equal(t, "/api/v1/query", path)
	require.NoError(t, os.WriteFile(file, []byte("second\n"), 0o600))
	s.Look(t.Context(), "east")
	require.Equal(t, "Bearer second", token)
	require.NoError(t, os.Remove(file))
	require.Contains(t, s.Look(t.Context(), "east").Unknown, file)
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	good := newScene(t, nil).options
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no API server":    {func(o *Options) { o.API = nil }, "missing"},
		"no leases":        {func(o *Options) { o.Leases = nil }, "missing"},
		"no cache":         {func(o *Options) { o.Nodes = nil }, "missing"},
		"no clock":         {func(o *Options) { o.Now = nil }, "missing"},
		"no Prometheus":    {func(o *Options) { o.Prometheus = nil }, "there are 0 URLs of Prometheus"},
		"too many":         {func(o *Options) { o.Prometheus = slices.Repeat(o.Prometheus, 17) }, "17 URLs"},
		"no scheme":        {func(o *Options) { o.Prometheus = urls(t, "p:9090") }, "http:// or https://"},
		"a query":          {func(o *Options) { o.Prometheus = urls(t, "http://p:9090/?a=b") }, "has a query"},
		"a file not there": {func(o *Options) { o.HTTPConfig.TLSConfig.CAFile = "no-such-file" }, "no-such-file"},
		"two ways to be known": {func(o *Options) {
			o.HTTPConfig.BasicAuth = &promconfig.BasicAuth{Username: "u"}
			o.HTTPConfig.BearerToken = "t"
		}, "providers.kilo.httpConfig"},
	} {
		o := good
		c.change(&o)
		_, err := New(o)
		require.ErrorContains(t, err, c.want, name)
		require.NotContains(t, err.Error(), "pass", name)
	}
}

// askEast queries with the present Nodes.
func askEast(t *testing.T, s *scene) (results, error) {
	t.Helper()
	v, err := s.read(t.Context())
	require.NoError(t, err)
	return s.ask(t.Context(), v, "east")
}

// TestAPrometheusThatTakesNoPOSTIsAskedByGET, as behind a proxy that allows only GET.
func TestAPrometheusThatTakesNoPOSTIsAskedByGET(t *testing.T) {
	s := dark(t, nil, east()...)
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if query := r.URL.Query().Get("query"); !strings.Contains(query, probeMetric) {
			t.Errorf("another query: %s", query)
		}
		writeMatrix(w, matrix(map[string]string{"east-1>east-2": "1"}))
	}
	w, err := askEast(t, s)
	require.NoError(t, err)
	require.NotEmpty(t, w.local)
}

// FuzzWords gives arbitrary answers: nothing panics, the result has only Nodes' names, and shares
// are between 0 and 1.
func FuzzWords(f *testing.F) {
	f.Add([]byte(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"node":"a","dst_node":"b","proto":"tcp"},"values":[[1,"0"],[2,"1"]]}]}}`), "a", "b")
	f.Add([]byte(`{"status":"success","data":{"resultType":"matrix","result":[null,{"metric":{},"values":[[1,"NaN"]],"histograms":[]}]}}`), "a", "b")
	f.Add([]byte(`{"status":"success","data":{"result":[{"metric":{"node":"w","dst_node":"l","proto":"udp"},"values":[[1,"1"]]}],"resultType":"matrix"},"isPartial":true}`), "l", "b")
	f.Add([]byte(`{"status":"success","data":{"resultType":"vector","result":[]}}`), "", "")
	f.Add([]byte(`{"status":"error"}`), "a", "a")
	f.Fuzz(func(t *testing.T, text []byte, one, other string) {
		all := members("l", one, other)
		v := append(view{{Node: election.Node{Name: "w", Location: "west"}}}, all...)
		local, cross := newReader(v, "east", true), newReader(v, "east", false)
		for _, e := range []*reader{local, cross} {
			var a reply
			if a.read(json.NewDecoder(answers.Reader(t.Context(), bytes.NewReader(text))), e.read) != nil || a.judge() != nil {
				return
			}
		}
		w := newResults(local, cross, time.Minute)
		for src, about := range w.local {
			require.NotNil(t, find(all, src))
			require.NotContains(t, about, src)
			for _, said := range about {
				require.False(t, math.IsNaN(said.failing) || said.failing < 0 || said.failing > 1)
				require.False(t, said.good && said.failing == 1)
			}
		}
		for _, by := range w.cross {
			require.Equal(t, []string{"west"}, slices.Collect(maps.Keys(by)))
		}
		ok, known, why := w.reached(all, "l")
		require.Equal(t, ok, why == "")
		require.True(t, known || !ok, "nobody is reached of whom nothing is known")
		ties, _, why := w.candidate(one, "l", all, w.accusers(all, suspects(all, "l"), true))
		require.Equal(t, ties > 0, why == "", "who is tied to nobody is not chosen")
	})
}
