package redfish

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/redfish/settings"
	"drydock.dev/drydock/remediations/providers/redfish/sim"
	"drydock.dev/drydock/remediations/testing/providertest"
)

const (
	user     = "drydock"
	password = `correct-horse+battery/"staple"<&>`
	uuid1    = "4c4c4544-0042-3510-8054-b7c04f4d3332"
	uuid2    = "4c4c4544-0042-3510-8054-b7c04f4d3333"
)

var selfSigned = sync.OnceValue(func() sim.Certificate {
	c, err := sim.SelfSigned()
	if err != nil {
		panic(err)
	}
	return c
})

func file(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// bmcOf is a BMC at that address.
func bmcOf(t testing.TB, node, url string, auth Auth) BMC {
	t.Helper()
	return BMC{
		Node: node, URL: url, Auth: auth, Fingerprint: selfSigned().Fingerprint(),
		UsernameFile: file(t, "username", user+"\n"), PasswordFile: file(t, "password", password+"\n"),
	}
}

var (
	machine1 = engine.Machine{Node: "node-1", SystemUUID: uuid1, Attempt: "abcdef-0-1"}
	machine2 = engine.Machine{Node: "node-2", SystemUUID: uuid2, Attempt: "fedcba-0-1"}
	system1  = sim.System{ID: "blade-1", UUID: uuid1, Serial: "SN-1"}
	system2  = sim.System{ID: "blade-2", UUID: strings.ToUpper(uuid2), Serial: "SN-2"}
)

// TestConformance tests the provider against the contract of all providers: with the answers of the
// standard and of two vendors, with basic authentication and with sessions, hard and soft.
func TestConformance(t *testing.T) {
	for name, of := range map[string]struct {
		vendor sim.Vendor
		auth   Auth
		soft   bool
	}{
		"standard, basic":        {sim.Standard, Basic, false},
		"iDRAC, session":         {sim.IDRAC, Session, false},
		"OpenBMC, session, soft": {sim.OpenBMC, Session, true},
	} {
		t.Run(name, func(t *testing.T) {
			providertest.Run(t, providertest.Provider{
				DoesNotApply: map[string]string{
					"replacement":                          "nothing is replaced",
					"the same attempt again after a crash": "a reset names no attempt: the record alone keeps a second one from leaving",
					"exchanged at the last moment":         "a reset names no machine, and takes no condition with it; the look right before it is all there is",
				},
				PerMachine: true, KeepsMachine: true,
				Slow: of.auth == Session, // twice the requests, and the same client
				Start: func(t testing.TB, timeout time.Duration) providertest.World {
					return startWorld(t, timeout, of.vendor, of.auth, of.soft)
				},
			})
		})
	}
}

// startWorld is a chassis with two machines behind one BMC.
func startWorld(t testing.TB, timeout time.Duration, vendor sim.Vendor, auth Auth, soft bool) providertest.World {
	side := sim.New(sim.Options{Vendor: vendor, Username: user, Password: password, Systems: []sim.System{system1, system2}})
	wire := providertest.NewHTTP(t, providertest.HTTPOptions{
		Handler: side, TLS: selfSigned().TLS(),
		Changes: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/Actions/ComputerSystem.Reset") },
		Error:   func(_ int, text string) (string, string) { return "", sim.Error("Base.1.0.GeneralError", text) },
	})
	bmcs := []BMC{bmcOf(t, "node-1", wire.URL(), auth), bmcOf(t, "node-2", wire.URL(), auth)}
	again := func() engine.Actuator {
		c, err := New(Options{Redfish: settings.Redfish{BMCs: bmcs, Timeout: timeout}})
		require.NoError(t, err)
		return Rebooter{c}
	}
	w := providertest.World{
		Actuator: again(), Again: again, Wire: wire, Close: wire.Close, Machine: machine1, Neighbour: machine2, ID: "SN-1", NeighbourID: "SN-2",
		Secrets: []string{password, base64.StdEncoding.EncodeToString([]byte(user + ":" + password))},
		Changed: func() (ids []string) {
			for _, done := range side.Resets() {
				ids = append(ids, done.Serial)
			}
			return ids
		},
		Set: func(which providertest.Scene) engine.Machine {
			other := sim.System{ID: "blade-1", UUID: "7d3c5a10-1111-4222-8333-944455556666", Serial: "SN-3"}
			again := sim.System{ID: "blade-3", UUID: uuid1, Serial: "SN-3"}
			switch which {
			case providertest.NoMachine:
				side.Set()
			case providertest.TwoMachines:
				side.Set(system1, again, system2)
			case providertest.AnotherOfItsName:
				side.Set(other, system2)
			case providertest.ItsIDIsAnothers: // the board moved: its UUID belongs to a machine behind another node's BMC
				side.Set(other)
			}
			m := machine1
			m.Soft = soft
			return m
		},
	}
	w.Machine.Soft, w.Neighbour.Soft = soft, soft
	w.Refuses = map[string]func() engine.Machine{}
	for name, change := range map[string]func(*sim.System){
		"it is off":                        func(s *sim.System) { s.Power = "Off" },
		"its reset is asked for elsewhere": func(s *sim.System) { s.Target = "/redfish/v1/Systems/blade-2/Actions/ComputerSystem.Reset" },
		"it has no reset of ours":          func(s *sim.System) { s.Resets = []string{"On", "PushPowerButton"} },
	} {
		w.Refuses[name] = func() engine.Machine {
			changed := system1
			change(&changed)
			side.Set(changed, system2)
			return w.Machine
		}
	}
	return w
}
