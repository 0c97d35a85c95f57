package redfish

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/redfish/settings"
	"drydock.dev/drydock/remediations/providers/redfish/sim"
)

// TestTargetsAsVendorsWriteThem: iLO 5 ends the target with a slash. The survey reports a refused
// target in advance.
func TestTargetsAsVendorsWriteThem(t *testing.T) {
	t.Parallel()
	const plain = "/redfish/v1/Systems/blade-1/Actions/ComputerSystem.Reset"
	for name, c := range map[string]struct{ target, refused string }{
		"as the standard says":     {plain, ""},
		"a slash at the end":       {plain + "/", ""},
		"its own address":          {"https://HOST" + plain, ""},
		"two slashes for one":      {"//redfish/v1//Systems/blade-1/Actions/ComputerSystem.Reset", ""},
		"another letter case":      {"/redfish/v1/systems/Blade-1/actions/ComputerSystem.Reset", ""},
		"another host":             {"https://elsewhere.invalid" + plain, "on another host, where Drydock sends nothing"},
		"another port":             {"https://HOST0" + plain, "on another host, where Drydock sends nothing"},
		"not encrypted":            {"http://HOST" + plain, "on another host, where Drydock sends nothing"},
		"another system":           {"/redfish/v1/Systems/blade-10/Actions/ComputerSystem.Reset", "is not below the system"},
		"up and down":              {"/redfish/v1/Systems/blade-1/Actions/../../blade-1/Actions/ComputerSystem.Reset", "is not below the system"},
		"up and down, in disguise": {"/redfish/v1/Systems/blade-1/Actions/%2e%2e/%2e%2e/2/Actions/ComputerSystem.Reset", "is not below the system"},
		"a question":               {plain + "?x=1", "is not below the system"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			side, _ := begin(t, sim.Options{})
			var mu sync.Mutex
			var posted []string
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					mu.Lock()
					posted = append(posted, r.URL.EscapedPath())
					mu.Unlock()
					r.URL.Path = plain
				}
				side.ServeHTTP(w, r)
			}))
			s := system1
			s.Target = strings.ReplaceAll(c.target, "HOST", strings.TrimPrefix(url, "https://"))
			side.Set(s)
			r := rebooter(t, bmcOf(t, "node-1", url, Basic))
			if c.refused != "" {
				requireRefused(t, r, side, machine1, c.refused)
				require.Empty(t, posted)
				return
			}
			requireReset(t, r, side, machine1, "ForceRestart")
			require.Equal(t, strings.HasSuffix(c.target, "/"), strings.HasSuffix(posted[0], "/"), "the place is asked as the BMC writes it")
		})
	}
}

// TestAMachineIsFoundBesideOneThatIsUnwell: a board with GPUs is a System of its own, and may fail
// for hours.
func TestAMachineIsFoundBesideOneThatIsUnwell(t *testing.T) {
	t.Parallel()
	for _, unwell := range []string{"blade-1", "blade-2"} {
		for _, status := range []int{404, 500, 503} {
			side, _ := begin(t, sim.Options{Systems: []sim.System{system2, system1}}) // the unhealthy one comes first
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, unwell) {
					sim.Fail(w, status, "Base.1.0.GeneralError", "not now")
					return
				}
				side.ServeHTTP(w, r)
			}))
			r := rebooter(t, bmcOf(t, "node-1", url, Basic))
			if unwell == "blade-2" {
				requireReset(t, r, side, machine1, "ForceRestart")
				continue
			}
			requireRefused(t, r, side, machine1, fmt.Sprintf("HTTP %d", status)) // the control: it may be the node's own
		}
	}
}

// TestAfterTheIntentOneSystemIsRead: after the survey only its System is read again, and that must
// still be the machine.
func TestAfterTheIntentOneSystemIsRead(t *testing.T) {
	t.Parallel()
	for auth, want := range map[Auth]string{
		Basic:   "GET /redfish/v1/Systems/blade-1, POST /redfish/v1/Systems/blade-1/Actions/ComputerSystem.Reset",
		Session: "POST /redfish/v1/SessionService/Sessions, GET /redfish/v1/Systems/blade-1, POST /redfish/v1/Systems/blade-1/Actions/ComputerSystem.Reset, DELETE",
	} {
		t.Run(string(auth), func(t *testing.T) {
			t.Parallel()
			side, _ := begin(t, sim.Options{Vendor: sim.OpenBMC, Systems: []sim.System{system2, system1}})
			var mu sync.Mutex
			var asked []string
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked = append(asked, r.Method+" "+r.URL.Path)
				mu.Unlock()
				side.ServeHTTP(w, r)
			}))
			r := rebooter(t, bmcOf(t, "node-1", url, auth))
			m := machine1
			m.Before = r.Survey(t.Context(), m).Before
			asked = nil
			outcome, err := r.Act(t.Context(), m, yes)
			require.NoError(t, err)
			require.Equal(t, remediations.CallAccepted, outcome)
			require.Contains(t, strings.Join(asked, ", "), want)
			require.Len(t, asked, strings.Count(want, ",")+1)
			require.Len(t, side.Resets(), 1)

			moved := system1
			moved.UUID = "7d3c5a10-1111-4222-8333-944455556666"
			side.Set(moved)
			outcome, err = r.Act(t.Context(), m, yes)
			require.Equal(t, remediations.CallRefused, outcome)
			require.ErrorContains(t, err, "is no longer the node's machine")
			require.Len(t, side.Resets(), 1)
		})
	}
}

// TestARecordThatNoSurveyKeptIsNotUsed: the record is on the Node, where others may write.
// Everything is then read again.
func TestARecordThatNoSurveyKeptIsNotUsed(t *testing.T) {
	t.Parallel()
	for _, forged := range []remediations.Before{
		`{"system":"/redfish/v1/Systems/blade-1","hard":"ForceOff"}`, `{"system":"/redfish/v1/Systems/blade-1","hard":"ForceRestart","soft":"ForceOff"}`,
		`{"system":"@elsewhere.invalid/","hard":"ForceRestart"}`, `{"instance":"i-1"}`, `{"system":"/redfish/v1/Systems/blade-1","hard":"ForceRestart"}`,
	} {
		side, url := begin(t, sim.Options{})
		m := machine1
		m.Before = forged
		outcome, err := rebooter(t, bmcOf(t, "node-1", url, Basic)).Act(t.Context(), m, yes)
		require.NoError(t, err, forged)
		require.Equal(t, remediations.CallAccepted, outcome)
		require.Equal(t, []sim.Done{{Serial: "SN-1", Kind: "ForceRestart"}}, side.Resets(), forged)
	}
}

// TestASlowBMCIsReportedAsSlow, and not as a fault of the network.
func TestASlowBMCIsReportedAsSlow(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	url := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	t.Cleanup(func() { close(hang) })
	c, err := New(Options{Redfish: settings.Redfish{BMCs: []BMC{bmcOf(t, "node-1", url, Basic)}, Timeout: 100 * time.Millisecond}})
	require.NoError(t, err)
	said := Rebooter{c}.Survey(t.Context(), machine1)
	require.Contains(t, said.Trouble, "in time; it is too slow, or the network")
	require.True(t, said.Unreached)
	require.Equal(t, remediations.AskPassing, said.Again)
	_, err = Rebooter{c}.Act(t.Context(), machine1, yes)
	require.ErrorIs(t, err, engine.ErrPassing)
}

// TestABMCThatWantsToBeAskedInAnotherWay: the BMC requires another form of the reset, and does
// nothing. The next call uses that form.
func TestABMCThatWantsToBeAskedInAnotherWay(t *testing.T) {
	t.Parallel()
	for name, refuses := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"it demands If-Match": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("If-Match") != "" {
				return false
			}
			sim.Fail(w, 428, "Base.1.0.PreconditionRequired", "send If-Match")
			return true
		},
		"it demands a slash": func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/") {
				return false
			}
			http.Redirect(w, r, r.URL.Path+"/", http.StatusPermanentRedirect)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			side, _ := begin(t, sim.Options{})
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && refuses(w, r) {
					return
				}
				r.URL.Path = strings.TrimSuffix(r.URL.Path, "/")
				if r.URL.Path == "/redfish/v1" {
					r.URL.Path += "/"
				}
				side.ServeHTTP(w, r)
			}))
			r := rebooter(t, bmcOf(t, "node-1", url, Basic))
			outcome, err := r.Act(t.Context(), machine1, yes)
			require.Equal(t, remediations.CallRefused, outcome)
			require.ErrorIs(t, err, engine.ErrLater)
			require.Empty(t, side.Resets())
			requireReset(t, r, side, machine1, "ForceRestart")
		})
	}
}

// TestFaultsOfTLSAreNamed: the error does not blame the network.
func TestFaultsOfTLSAreNamed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*tls.Config){
		"TLS 1.1": func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS11, tls.VersionTLS11 },
		"RSA key exchange": func(c *tls.Config) {
			c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.TLS = selfSigned().TLS()
			change(server.TLS)
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			t.Cleanup(server.Close)
			said := rebooter(t, bmcOf(t, "node-1", server.URL, Basic)).Survey(t.Context(), machine1)
			require.Contains(t, said.Trouble, "the TLS handshake with the BMC failed")
			require.NotContains(t, said.Trouble, "network")
			require.True(t, said.Unreached)
		})
	}
}

// TestMoreSystemsThanAreAsked: the error names the reason.
func TestMoreSystemsThanAreAsked(t *testing.T) {
	t.Parallel()
	var many []map[string]string
	for i := range 39 {
		many = append(many, map[string]string{"@odata.id": fmt.Sprintf("/redfish/v1/Systems/%d", i)})
	}
	list, err := json.Marshal(map[string]any{"Members": many})
	require.NoError(t, err)
	side, _ := begin(t, sim.Options{})
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/redfish/v1/Systems":
			_, _ = w.Write(list)
		case strings.HasPrefix(r.URL.Path, "/redfish/v1/Systems/"):
			_, _ = w.Write([]byte(`{"Id": "x", "UUID": "` + uuid2 + `"}`))
		default:
			side.ServeHTTP(w, r)
		}
	}))
	said := rebooter(t, bmcOf(t, "node-1", url, Basic)).Survey(t.Context(), machine1)
	require.Contains(t, said.Trouble, "takes more than 40 requests")
	require.NotContains(t, said.Trouble, "network")
}
