package alertmanager

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"github.com/stretchr/testify/require"
)

func TestPollReadsTheReplicaThatLives(t *testing.T) {
	alive := replies(t, shown("active", node("n1")))
	dead := serveAt(t, "127.0.0.1:0", nil)
	deadURL := "http://" + dead.Listener.Addr().String()
	dead.Close()

	s := newClient(t, Options{URLs: []string{deadURL, alive}}).Look(t.Context())
	require.Len(t, s, 2)
	require.ErrorContains(t, s[0].Err, deadURL)
	require.ErrorContains(t, s[0].Err, "connection refused")
	require.NoError(t, s[1].Err)
	require.Len(t, s[1].Alerts, 1)

	s = newClient(t, Options{URLs: []string{deadURL}}).Look(t.Context())
	require.Len(t, s, 1)
	require.Error(t, s[0].Err)
}

func TestPollOutlivesAHungReplica(t *testing.T) {
	t.Parallel()
	before := func(http.ResponseWriter) {}
	within := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("["))
		_ = http.NewResponseController(w).Flush()
	}
	for name, first := range map[string]func(http.ResponseWriter){"before the answer": before, "within the answer": within} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hung := serve(t, func(w http.ResponseWriter, r *http.Request) {
				first(w)
				<-r.Context().Done()
			})
			alive := replies(t, shown("active", node("n1")))
			c := newClient(t, Options{URLs: []string{hung, alive}, Timeout: patience})
			s := c.Look(t.Context())
			require.ErrorContains(t, s[0].Err, "asking Alertmanager "+hung+": no complete answer within "+patience.String())
			require.ErrorIs(t, s[0].Err, context.DeadlineExceeded)
			require.NoError(t, s[1].Err)
		})
	}
}

func TestEveryAddressOfANameIsAReplica(t *testing.T) {
	host := make(chan string, 2)
	answer := func(alert string) http.HandlerFunc {
		body := list(t, shown("active", node(alert)))
		return func(w http.ResponseWriter, r *http.Request) {
			host <- r.Host
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
		}
	}
	one := serveAt(t, "127.0.0.1:0", answer("n1"))
	one.Start()
	port := portOf(t, one.URL)
	two := serveAt(t, "127.0.0.2:"+port, answer("n2"))
	two.Start()
	known := names{"am.test": {"127.0.0.2", "127.0.0.1", "127.0.0.2"}}
	c := newClient(t, Options{URLs: []string{"http://am.test:" + port}, Resolver: known.resolve})

	s := c.Look(t.Context())
	require.Len(t, s, 2)
	require.Equal(t, "http://127.0.0.1:"+port, s[0].URL)
	require.Contains(t, s[0].Alerts, keyOf(node("n1")))
	require.Equal(t, "http://127.0.0.2:"+port, s[1].URL)
	require.Contains(t, s[1].Alerts, keyOf(node("n2")))
	require.Equal(t, "am.test:"+port, <-host)
	require.Equal(t, "am.test:"+port, <-host)

	known["am.test"] = []string{"127.0.0.2"}
	s = c.Look(t.Context())
	require.Len(t, s, 1, "names are looked up again on each poll")
	require.Equal(t, "http://127.0.0.2:"+port, s[0].URL)
}

func TestTLSChecksTheNameAndNotTheAddress(t *testing.T) {
	s := serveAt(t, "127.0.0.2:0", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("[]"))
	})
	s.StartTLS() // its certificate is for 127.0.0.1, ::1 and example.com
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	port := portOf(t, s.URL)
	known := names{"example.com": {"127.0.0.2"}, "am.test": {"127.0.0.2"}}
	o := Options{Resolver: known.resolve, HTTPConfig: config.HTTPClientConfig{TLSConfig: config.TLSConfig{CAFile: ca}}}

	o.URLs = []string{"https://example.com:" + port}
	r := only(t, o)
	require.NoError(t, r.Err)
	require.Equal(t, "https://127.0.0.2:"+port, r.URL)

	o.URLs = []string{"https://am.test:" + port}
	require.ErrorContains(t, only(t, o).Err, "not am.test")
}

func TestANameWithoutAddressIsAReplicaThatFailed(t *testing.T) {
	many := make([]string, maxReplicas+1)
	for i := range many {
		many[i] = fmt.Sprintf("10.0.0.%d", i)
	}
	known := names{"empty.test": {}, "odd.test": {"not-an-address"}, "many.test": many}
	cases := map[string]string{
		"empty.test":   "it has no address",
		"unknown.test": "no such host",
		"odd.test":     `"not-an-address" is not an address`,
		"many.test":    "it has 65 addresses, and at most 64 are asked",
	}
	for host, want := range cases {
		t.Run(host, func(t *testing.T) {
			r := only(t, Options{URLs: []string{"http://" + host + ":9093"}, Resolver: known.resolve})
			require.Equal(t, "http://"+host+":9093", r.URL)
			require.ErrorContains(t, r.Err, "looking up the host of Alertmanager http://"+host+":9093")
			require.ErrorContains(t, r.Err, want)
		})
	}
}

func TestAHungLookupIsBounded(t *testing.T) {
	hung := func(ctx context.Context, _ string) ([]string, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r := only(t, Options{URLs: []string{"http://am.test"}, Resolver: hung, Timeout: 50 * time.Millisecond})
	require.ErrorIs(t, r.Err, context.DeadlineExceeded)
}

func TestTwoNamesOfOneAddressAreOneReplica(t *testing.T) {
	url := replies(t)
	port := portOf(t, url)
	known := names{"a.test": {"127.0.0.1"}, "b.test": {"127.0.0.1"}}
	s := newClient(t, Options{URLs: []string{"http://a.test:" + port, "http://b.test:" + port}, Resolver: known.resolve}).Look(t.Context())
	require.Len(t, s, 1)
	require.NoError(t, s[0].Err)
}

func TestAProxyDoesTheResolving(t *testing.T) {
	asked := make(chan string, 1)
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Host
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("[]"))
	})
	var cfg config.HTTPClientConfig
	require.NoError(t, cfg.ProxyURL.UnmarshalJSON([]byte(`"`+proxy+`"`)))
	never := func(context.Context, string) ([]string, error) { return nil, errors.New("looked up") }
	r := only(t, Options{URLs: []string{"http://am.test:9093"}, HTTPConfig: cfg, Resolver: never})
	require.NoError(t, r.Err)
	require.Equal(t, "http://am.test:9093", r.URL)
	require.Equal(t, "am.test:9093", <-asked)
}

// TestLookAsksEveryReplica: a replica that does not answer is in the answer, too, with its error.
func TestLookAsksEveryReplica(t *testing.T) {
	replicas := newClient(t, Options{URLs: []string{gone(t), gone(t)}}).Look(t.Context())
	require.Len(t, replicas, 2)
	require.Error(t, replicas[0].Err)
	require.Error(t, replicas[1].Err)
}
