package redfish

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/redfish/sim"
	"drydock.dev/drydock/remediations/signs"
)

// TestACertificateIsNeverLeftUnchecked: it is pinned, or signed by the configured authority; else
// nothing is sent.
func TestACertificateIsNeverLeftUnchecked(t *testing.T) {
	t.Parallel()
	another, err := sim.SelfSigned()
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		pin     string
		ca      []byte
		refused bool
	}{
		"pinned":            {pin: selfSigned().Fingerprint()},
		"pinned in colons":  {pin: strings.ToUpper(selfSigned().Fingerprint()[:2] + ":" + selfSigned().Fingerprint()[2:])},
		"another is pinned": {pin: another.Fingerprint(), refused: true},
		"signed":            {ca: selfSigned().PEM()},
		"signed by another": {ca: another.PEM(), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			side, url := begin(t, sim.Options{})
			b := bmcOf(t, "node-1", url, Basic)
			b.Fingerprint = tc.pin
			if tc.ca != nil {
				b.CAFile = file(t, "ca.crt", string(tc.ca))
			}
			if !tc.refused {
				requireReset(t, rebooter(t, b), side, machine1, "ForceRestart")
				return
			}
			requireRefused(t, rebooter(t, b), side, machine1, "certificate is not trusted")
			_, _, refused := side.Sessions()
			require.Zero(t, refused, "nobody was asked")
		})
	}
}

// TestALinkThatLeadsElsewhereIsNotFollowed: a BMC names the addresses to read, and the reset's
// target.
func TestALinkThatLeadsElsewhereIsNotFollowed(t *testing.T) {
	t.Parallel()
	thief := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { thief++ }))
	t.Cleanup(elsewhere.Close)
	for target, says := range map[string]string{
		"@" + strings.TrimPrefix(elsewhere.URL, "http://") + "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset": "on another host, where Drydock sends nothing",
		"/redfish/v1/Systems/2/Actions/ComputerSystem.Reset":                                                      "is not below the system",
		"/redfish/v1/Systems/blade-1/Actions/../../2/Actions/ComputerSystem.Reset":                                "is not below the system",
	} {
		s := system1
		s.Target = target
		side, url := begin(t, sim.Options{Systems: []sim.System{s, {ID: "2", UUID: uuid2, Serial: "SN-2"}}})
		outcome, err := rebooter(t, bmcOf(t, "node-1", url, Basic)).Act(t.Context(), machine1, yes)
		require.Equal(t, remediations.CallRefused, outcome, target)
		require.ErrorContains(t, err, says)
		require.Empty(t, side.Resets())
	}
	require.Zero(t, thief)
}

// TestThePasswordIsInNoText: a BMC may show it in any place of its answers, whole or in the middle
// of a cut.
func TestThePasswordIsInNoText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 50) + password
	for name, adjust := range map[string]func(*sim.System){
		"ID":     func(s *sim.System) { s.ID, s.UUID = "x"+password[:7], uuid2 },
		"UUID":   func(s *sim.System) { s.UUID = long },
		"serial": func(s *sim.System) { s.Serial = long },
		"power":  func(s *sim.System) { s.Power = long },
		"resets": func(s *sim.System) { s.Resets = []string{long, password} },
		"target": func(s *sim.System) { s.Target = "@elsewhere/" + password },
	} {
		t.Run(name, func(t *testing.T) {
			s := system1
			adjust(&s)
			_, url := begin(t, sim.Options{Systems: []sim.System{s}})
			b := bmcOf(t, "node-1", url, Basic)
			if name == "serial" {
				b.SerialNumber = "SN-1"
			}
			r := rebooter(t, b)
			_, err := r.Act(t.Context(), machine1, yes)
			require.Error(t, err)
			for _, said := range []string{err.Error(), r.Survey(t.Context(), machine1).Trouble, r.Testify(t.Context(), machine1, signs.Sign{}).Saw} {
				require.NotContains(t, said, password[:10])
				require.NotContains(t, said, "battery")
			}
		})
	}
}

// TestACollectionWithoutAnEnd: a read of the collection ends.
func TestACollectionWithoutAnEnd(t *testing.T) {
	t.Parallel()
	side, _ := begin(t, sim.Options{})
	asked := 0
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/redfish/v1/Systems" {
			side.ServeHTTP(w, r)
			return
		}
		asked++
		_, _ = w.Write([]byte(`{"Members": [{"@odata.id": "/redfish/v1/Systems/blade-1"}], "Members@odata.nextLink": "/redfish/v1/Systems"}`))
	}))
	requireRefused(t, rebooter(t, bmcOf(t, "node-1", url, Basic)), side, machine1, "takes more than 40 requests")
	require.LessOrEqual(t, asked, 2*maxRequests)
}

// TestACallLeavesNoConnection: a BMC has room for few connections.
func TestACallLeavesNoConnection(t *testing.T) {
	t.Parallel()
	for _, auth := range []Auth{Basic, Session} {
		t.Run(string(auth), func(t *testing.T) { leavesNoConnection(t, auth) })
	}
}

func leavesNoConnection(t *testing.T, auth Auth) {
	side := sim.New(sim.Options{Username: user, Password: password, Systems: []sim.System{system1}})
	var open, made atomic.Int64
	server := httptest.NewUnstartedServer(side)
	server.TLS = selfSigned().TLS()
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
			made.Add(1)
		case http.StateClosed:
			open.Add(-1)
		default:
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	r := rebooter(t, bmcOf(t, "node-1", server.URL, auth))
	for range 3 {
		require.Empty(t, r.Survey(t.Context(), machine1).Trouble)
	}
	require.Equal(t, int64(3), made.Load(), "one for each call")
	require.Eventually(t, func() bool { return open.Load() == 0 }, time.Minute, time.Millisecond)
}
