package redfish

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/redfish/settings"
	"drydock.dev/drydock/remediations/providers/redfish/sim"
	"drydock.dev/drydock/remediations/signs"
)

// begin is a BMC over TLS, and its address.
func begin(t *testing.T, o sim.Options) (*sim.BMC, string) {
	t.Helper()
	if o.Vendor == "" {
		o.Vendor = sim.Standard
	}
	o.Username, o.Password = user, password
	if o.Systems == nil {
		o.Systems = []sim.System{system1}
	}
	side := sim.New(o)
	return side, serve(t, side)
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.TLS = selfSigned().TLS()
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that are broken off on purpose
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func rebooter(t *testing.T, all ...BMC) Rebooter {
	t.Helper()
	c, err := New(Options{Redfish: settings.Redfish{BMCs: all, Timeout: 2 * time.Minute}})
	require.NoError(t, err)
	return Rebooter{c}
}

func yes() error { return nil }

// requireRefused requires that the survey reports it in advance, that Act refuses, and that nothing
// was reset.
func requireRefused(t *testing.T, r Rebooter, side *sim.BMC, m engine.Machine, says string) {
	t.Helper()
	said := r.Survey(t.Context(), m)
	require.Contains(t, said.Trouble, says)
	require.Contains(t, said.Trouble, m.Node)
	outcome, err := r.Act(t.Context(), m, yes)
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorContains(t, err, says)
	require.Empty(t, side.Resets())
}

// requireReset requires that nothing forbids the reset, and that it is done once, in that way.
func requireReset(t *testing.T, r Rebooter, side *sim.BMC, m engine.Machine, kind string) {
	t.Helper()
	said := r.Survey(t.Context(), m)
	require.Empty(t, said.Trouble)
	require.Empty(t, side.Resets(), "a look changes nothing")
	m.Before = said.Before
	outcome, err := r.Act(t.Context(), m, yes)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.Equal(t, []sim.Done{{Serial: "SN-1", Kind: kind}}, side.Resets())
}

// TestTheResetThatIsChosen: a type that the BMC lists, hard or soft, and no other.
func TestTheResetThatIsChosen(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		vendor        sim.Vendor
		resets        []string
		soft          bool
		kind, refused string
	}{
		"standard":           {vendor: sim.Standard, kind: "ForceRestart"},
		"iDRAC":              {vendor: sim.IDRAC, kind: "ForceRestart"},
		"OpenBMC":            {vendor: sim.OpenBMC, kind: "ForceRestart"},
		"no ForceRestart":    {vendor: sim.OpenBMC, resets: []string{"On", "ForceOff", "GracefulRestart", "PowerCycle"}, kind: "PowerCycle"},
		"nothing is listed":  {vendor: sim.Standard, resets: sim.None, kind: "ForceRestart"},
		"neither":            {vendor: sim.Standard, resets: []string{"On", "ForceOff", "PushPowerButton"}, refused: "offers none of the resets"},
		"soft":               {vendor: sim.OpenBMC, soft: true, kind: "GracefulRestart"},
		"soft at iDRAC":      {vendor: sim.IDRAC, soft: true, refused: "offers none of the resets"},
		"soft, nothing said": {vendor: sim.Standard, resets: sim.None, soft: true, refused: "offers none of the resets"},
	} {
		t.Run(name, func(t *testing.T) {
			s := system1
			s.Resets = tc.resets
			side, url := begin(t, sim.Options{Vendor: tc.vendor, Systems: []sim.System{s}})
			m := machine1
			m.Soft = tc.soft
			r := rebooter(t, bmcOf(t, "node-1", url, Basic))
			switch {
			case tc.refused == "":
				requireReset(t, r, side, m, tc.kind)
			case tc.soft: // the survey checks the hard one, because the plan ends with it
				for _, before := range []remediations.Before{"", r.Survey(t.Context(), m).Before} {
					m.Before = before
					outcome, err := r.Act(t.Context(), m, yes)
					require.Equal(t, remediations.CallRefused, outcome)
					require.ErrorContains(t, err, tc.refused)
					require.ErrorIs(t, err, engine.ErrUnable, "the plan goes on with the hard one")
				}
				require.Empty(t, side.Resets())
			default:
				requireRefused(t, r, side, m, tc.refused)
			}
		})
	}
}

// TestAMachineOfABareMetalHostIsNotReset behind its operator's back; the refusal names the host.
// Its power is still a witness.
func TestAMachineOfABareMetalHostIsNotReset(t *testing.T) {
	t.Parallel()
	side, url := begin(t, sim.Options{})
	r := rebooter(t, bmcOf(t, "node-1", url, Basic))
	m := machine1
	for id, says := range map[string]string{
		"metal3://metal/host-3/prod-7": `BareMetalHost "metal/host-3" owns the machine`,
		"metal3://2b0d6ac2-5e8f-4a3e-b8a7-0c3a5d1f0e11": "a BareMetalHost owns the machine, and the baremetal-operator would undo a reset by Drydock; " +
			"remove the node from providers.redfish, and configure providers.annotation with preset metal3, which requests the reboot from that operator",
	} {
		m.ProviderID = id
		requireRefused(t, r, side, m, says)
		require.Equal(t, signs.Well, r.Testify(t.Context(), m, signs.Sign{Kind: signs.NotRunning}).Answer)
	}
	m.ProviderID = "other://metal3"
	requireReset(t, r, side, m, "ForceRestart")
}

// TestOnlyWhatRunsIsRebooted, and the power is a witness of its own.
func TestOnlyWhatRunsIsRebooted(t *testing.T) {
	t.Parallel()
	for power, tc := range map[string]struct {
		answer  signs.Answer
		refused string
	}{
		"On": {signs.Well, ""}, "Off": {signs.Ill, "the machine is off"},
		"PoweringOn": {signs.Unknown, "the machine is PoweringOn"}, "PoweringOff": {signs.Unknown, "the machine is PoweringOff"},
		"Pondering": {signs.Unknown, `does not report whether the machine is on; its power state is "Pondering"`},
	} {
		t.Run(power, func(t *testing.T) {
			s := system1
			s.Power = power
			side, url := begin(t, sim.Options{Systems: []sim.System{s}})
			r := rebooter(t, bmcOf(t, "node-1", url, Basic))
			said := r.Testify(t.Context(), machine1, signs.Sign{Kind: signs.NotRunning})
			require.Equal(t, tc.answer, said.Answer)
			require.Equal(t, `the BMC says that the machine's power is "`+power+`"`, said.Saw)
			if tc.refused != "" {
				requireRefused(t, r, side, machine1, tc.refused)
				return
			}
			requireReset(t, r, side, machine1, "ForceRestart")
		})
	}
}

// TestSessionsAreClosedOnEveryPath: BMCs have few of them, and forget them slowly.
func TestSessionsAreClosedOnEveryPath(t *testing.T) {
	t.Parallel()
	off := system1
	off.Power = "Off"
	for name, of := range map[string]struct {
		o        sim.Options
		mayStill func() error
	}{
		"a reset":          {sim.Options{}, yes},
		"mayStill says no": {sim.Options{}, func() error { return errors.New("no") }},
		"it is off":        {sim.Options{Systems: []sim.System{off}}, yes},
		"another machine":  {sim.Options{Systems: []sim.System{system2}}, yes},
		"no machine":       {sim.Options{Systems: []sim.System{}}, yes},
		"only looks":       {sim.Options{ReadOnly: true}, yes},
		"sessions alone":   {sim.Options{NoBasic: true}, yes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			side, url := begin(t, of.o)
			r := rebooter(t, bmcOf(t, "node-1", url, Session))
			_, _ = r.Act(t.Context(), machine1, of.mayStill)
			_ = r.Testify(t.Context(), machine1, signs.Sign{})
			open, made, _ := side.Sessions()
			require.Positive(t, made, "the control")
			require.Zero(t, open)
		})
	}
}

// TestNoFreeSession passes, and does not concern the account.
func TestNoFreeSession(t *testing.T) {
	t.Parallel()
	_, url := begin(t, sim.Options{Sessions: -1})
	said := rebooter(t, bmcOf(t, "node-1", url, Session)).Survey(t.Context(), machine1)
	require.Contains(t, said.Trouble, "the BMC has no free session (HTTP 503 to POST /redfish/v1/SessionService/Sessions)")
	require.Equal(t, remediations.AskPassing, said.Again)
	require.False(t, said.Fleetwide)
}
