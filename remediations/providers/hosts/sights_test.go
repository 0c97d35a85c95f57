package hosts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/rescue/apiserver"
)

// apiServer is an API server on 127.0.0.1, or at another loopback address with the port of the
// first.
func apiServer(t *testing.T, address string, serve http.HandlerFunc) (port int, ca []byte) {
	t.Helper()
	s := httptest.NewUnstartedServer(serve)
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	_ = s.Listener.Close()
	s.Listener = listener
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return listener.Addr().(*net.TCPAddr).Port, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func answers(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || r.Method != http.MethodGet {
			code = http.StatusTeapot
		}
		w.Header().Set("Location", "https://127.0.0.1/elsewhere")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

func plane(t *testing.T, port int, ca []byte, hosts ...Host) *ControlPlane {
	t.Helper()
	c, err := NewControlPlane(ControlPlaneOptions{Hosts: hosts, Port: port, CA: ca, Timeout: 10 * time.Minute, Now: time.Now})
	require.NoError(t, err)
	return c
}

// brief shortens the time limit of a look at a server that does not answer. It is enough to make a
// connection on a busy machine.
func brief(c *ControlPlane) *ControlPlane {
	c.o.Timeout = patience
	return c
}

var cp1 = Host{Name: "cp-1", Addresses: []string{"127.0.0.1"}}

func TestAnAPIServerIsSeenByItsOwnWord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code  int
		body  string
		state apiserver.HostState
		says  string
	}{
		{200, "ok", apiserver.HostReady, "ready"},
		{500, "[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/x failed: \x1b[31m\n", apiserver.HostFailing, "/readyz answers 500: etcd, poststarthook/x failed"},
		{503, strings.Repeat("[-]y ", 1<<20), apiserver.HostFailing, "503"},
		{401, "", apiserver.HostUnknown, "401"},
		{403, "", apiserver.HostUnknown, "403"},
		{301, "", apiserver.HostUnknown, "301"},
		{307, "", apiserver.HostUnknown, "307"},
		{429, "", apiserver.HostUnknown, "429"},
		{404, "", apiserver.HostUnknown, "404"},
		{204, "", apiserver.HostUnknown, "204"},
	} {
		port, ca := apiServer(t, "127.0.0.1:0", answers(c.code, c.body))
		got := plane(t, port, ca, cp1).Sights(t.Context())["cp-1"]
		require.Equal(t, c.state, got.State, "%d: %s", c.code, got.Why)
		require.Contains(t, got.Why, c.says)
		require.Equal(t, "cp-1", got.Host)
		require.False(t, got.At.IsZero())
		require.Less(t, len(got.Why), 300)
		requireFit(t, got.Why)
	}
}

func TestWhoRefusesOrHangsFailsAndWhoCannotBeVerifiedIsUnknown(t *testing.T) {
	t.Parallel()
	port, ca := apiServer(t, "127.0.0.1:0", answers(200, "ok"))
	other, strangersCA := apiServer(t, "127.0.0.1:0", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mute, err := net.Listen("tcp", "127.0.0.1:0") // its kernel accepts connections, and nothing speaks TLS
	require.NoError(t, err)
	t.Cleanup(func() { _ = mute.Close() })
	const closedPort = 1 // a port that was free a moment ago may be another test's the next moment
	deafTo := deaf(t, port)
	fake, _ := selfSigned(t)

	for name, c := range map[string]struct {
		plane *ControlPlane
		state apiserver.HostState
		says  string
	}{
		"refused":            {plane(t, closedPort, ca, cp1), apiserver.HostFailing, "refused"},
		"hangs":              {brief(plane(t, other, strangersCA, cp1)), apiserver.HostFailing, "deadline exceeded"},
		"no TLS":             {brief(plane(t, mute.Addr().(*net.TCPAddr).Port, ca, cp1)), apiserver.HostFailing, ""},
		"no connection":      {brief(plane(t, port, ca, Host{Name: "cp-1", Addresses: []string{deafTo}})), apiserver.HostFailing, ""},
		"another CA":         {plane(t, port, fake, cp1), apiserver.HostUnknown, "certificate"},
		"another's name":     {plane(t, sameCertificateAt(t, "127.0.0.9:0"), ca, Host{Name: "cp-1", Addresses: []string{"127.0.0.9"}}), apiserver.HostUnknown, "certificate"},
		"speaks HTTP itself": {plane(t, plainHTTP(t), ca, cp1), apiserver.HostUnknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.plane.Sights(t.Context())["cp-1"]
			require.Equal(t, c.state, got.State, got.Why)
			require.Contains(t, got.Why, c.says)
		})
	}
}

// selfSigned makes another CA.
func selfSigned(t *testing.T) ([]byte, *x509.Certificate) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.TLS = &tls.Config{}
	s.StartTLS()
	defer s.Close()
	key := mustKey(t)
	template := *s.Certificate()
	template.PublicKey = nil
	raw, err := x509.CreateCertificate(nil, &template, &template, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), &template
}

// sameCertificateAt serves a certificate for another address.
func sameCertificateAt(t *testing.T, address string) int {
	t.Helper()
	port, _ := apiServer(t, address, answers(200, "ok"))
	return port
}

func plainHTTP(t *testing.T) int {
	t.Helper()
	s := httptest.NewServer(answers(200, "ok"))
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

func TestAnAnswerWithoutEndIsBounded(t *testing.T) {
	t.Parallel()
	port, ca := apiServer(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte("[-]etcd failed\n"))
		}
	})
	c := plane(t, port, ca, cp1)
	began := time.Now()
	got := c.Sights(t.Context())["cp-1"]
	require.Equal(t, apiserver.HostFailing, got.State)
	require.Less(t, time.Since(began), c.o.Timeout/2)

	port, ca = apiServer(t, "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Much", strings.Repeat("x", 2*maxHeader))
	})
	require.Equal(t, apiserver.HostUnknown, plane(t, port, ca, cp1).Sights(t.Context())["cp-1"].State)
}

func TestAllHostsAreAskedAtOnce(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	all := make(chan struct{})
	port, ca := apiServer(t, "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 3 {
			close(all)
		}
		<-all
		w.WriteHeader(http.StatusInternalServerError)
	})
	var hosts []Host
	for i := range 3 {
		hosts = append(hosts, Host{Name: fmt.Sprintf("cp-%d", i), Addresses: cp1.Addresses})
	}
	got := plane(t, port, ca, hosts...).Sights(t.Context())
	require.Len(t, got, 3)
	for _, s := range got {
		require.Equal(t, apiserver.HostFailing, s.State)
		require.Contains(t, s.Why, "500", "each of them was answered, which none is before all are asked")
	}
}

func TestSeveralAddressesOfAHostSpeakTogether(t *testing.T) {
	t.Parallel()
	port, ca := apiServer(t, "127.0.0.1:0", answers(200, "ok"))
	both := Host{Name: "cp-1", Addresses: []string{"127.0.0.2", "127.0.0.1"}}
	require.Equal(t, apiserver.HostReady, plane(t, port, ca, both).Sights(t.Context())["cp-1"].State)

	port, ca = apiServer(t, "127.0.0.1:0", answers(403, ""))
	got := plane(t, port, ca, both).Sights(t.Context())["cp-1"]
	require.Equal(t, apiserver.HostUnknown, got.State, "one of them refuses, the other says nothing of itself")
	require.Contains(t, got.Why, "127.0.0.2: ")

	port, ca = apiServer(t, "127.0.0.1:0", answers(500, ""))
	require.Equal(t, apiserver.HostFailing, plane(t, port, ca, both).Sights(t.Context())["cp-1"].State)
}

func TestOneAddressThatIsReadyIsEnough(t *testing.T) {
	t.Parallel()
	ready, failing, unknown := apiserver.HostSight{State: apiserver.HostReady}, apiserver.HostSight{State: apiserver.HostFailing}, apiserver.HostSight{State: apiserver.HostUnknown}
	h := Host{Name: "cp-1", Addresses: []string{"127.0.0.1", "127.0.0.2"}}
	for _, other := range []apiserver.HostSight{failing, unknown} {
		require.Equal(t, ready, combine(h, []apiserver.HostSight{ready, other}))
		require.Equal(t, ready, combine(h, []apiserver.HostSight{other, ready}))
		require.Equal(t, apiserver.HostUnknown, combine(h, []apiserver.HostSight{other, unknown}).State)
	}
}

func TestACallerThatHasNoTimeHasSeenNothing(t *testing.T) {
	t.Parallel()
	port, ca := apiServer(t, "127.0.0.1:0", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	got := plane(t, port, ca, cp1).Sights(ctx)["cp-1"]
	require.Equal(t, apiserver.HostUnknown, got.State, got.Why)
}

func TestNoProxyIsAskedAndTheCAFileIsReadAgain(t *testing.T) {
	t.Parallel()
	require.Nil(t, newAsker(nil).Transport.(*http.Transport).Proxy, "which no look at a loopback address would show")
	port, ca := apiServer(t, "127.0.0.1:0", answers(200, "ok"))
	file := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(file, ca, 0o600))
	c, err := NewControlPlane(ControlPlaneOptions{Hosts: []Host{cp1}, Port: port, CAFile: file, Now: time.Now})
	require.NoError(t, err)
	require.Equal(t, apiserver.HostReady, c.Sights(t.Context())["cp-1"].State)
	fake, _ := selfSigned(t)
	require.NoError(t, os.WriteFile(file, fake, 0o600))
	require.Equal(t, apiserver.HostUnknown, c.Sights(t.Context())["cp-1"].State)
	require.NoError(t, os.Remove(file))
	got := c.Sights(t.Context())["cp-1"]
	require.Equal(t, apiserver.HostUnknown, got.State)
	require.Contains(t, got.Why, file)
}

func TestNewControlPlaneNamesTheOptionThatIsWrong(t *testing.T) {
	t.Parallel()
	_, ca := apiServer(t, "127.0.0.1:0", answers(200, "ok"))
	for says, change := range map[string]func(*ControlPlaneOptions){
		"0 hosts":                func(o *ControlPlaneOptions) { o.Hosts = nil },
		"not a port":             func(o *ControlPlaneOptions) { o.Port = -1 },
		"negative":               func(o *ControlPlaneOptions) { o.Timeout = -1 },
		"the clock":              func(o *ControlPlaneOptions) { o.Now = nil },
		"named twice":            func(o *ControlPlaneOptions) { o.Hosts = []Host{cp1, cp1} },
		"is not an IP address":   func(o *ControlPlaneOptions) { o.Hosts = []Host{{Name: "cp-1", Addresses: []string{"cp-1"}}} },
		"holds no certificate":   func(o *ControlPlaneOptions) { o.CA = nil },
		"reading the CA file":    func(o *ControlPlaneOptions) { o.CAFile = "/nowhere/ca.crt" },
		"65 hosts; write":        func(o *ControlPlaneOptions) { o.Hosts = make([]Host, apiserver.MaxControlPlaneHosts+1) },
		"is not the name of a N": func(o *ControlPlaneOptions) { o.Hosts = []Host{{Name: "CP 1", Addresses: cp1.Addresses}} },
	} {
		o := ControlPlaneOptions{Hosts: []Host{cp1}, CA: ca, Now: time.Now}
		change(&o)
		_, err := NewControlPlane(o)
		require.ErrorContains(t, err, says)
	}
	c := plane(t, 1, ca, cp1)
	h, ok := c.Host("cp-1")
	require.True(t, ok)
	require.Equal(t, cp1, h)
	_, ok = c.Host("cp-2")
	require.False(t, ok)
}
