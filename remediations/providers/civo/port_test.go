package civo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/signs"
)

var machine1 = engine.Machine{Node: "node-1", ProviderID: "civo://i-1", Attempt: "abcdef-0-1"}

// TestASurveySaysWhoseTroubleItIs, and when to try again.
func TestASurveySaysWhoseTroubleItIs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault     civosim.Fault
		fleetwide bool
		again     time.Duration
	}{
		"this machine is not there": {civosim.Missing("node-1"), false, remediations.AskMended},
		"the key is refused":        {civosim.Unauthorized(), true, remediations.AskMended},
		"Civo is down":              {civosim.ServerError(), true, remediations.AskPassing},
		"the connection is cut":     {civosim.Cut(), true, remediations.AskPassing},
	} {
		t.Run(name, func(t *testing.T) {
			sim := provider(t)
			sim.Inject(civosim.ListInstances, tc.fault)
			c := client(t, sim.URL())
			for _, s := range []remediations.Survey{Rebooter{c}.Survey(t.Context(), machine1), Replacer{c}.Survey(t.Context(), machine1)} {
				require.NotEmpty(t, s.Trouble)
				require.Empty(t, s.Before)
				require.Equal(t, tc.fleetwide, s.Fleetwide, s.Trouble)
				require.Equal(t, tc.again, s.Again, s.Trouble)
			}
			require.Empty(t, sim.Done(civosim.Any))
			sim.Heal()
			require.Empty(t, Rebooter{c}.Survey(t.Context(), machine1).Trouble, "the control")
		})
	}
}

// TestNoRebootWhileCivoIsAtWork: an instance that Civo builds or deletes is not rebooted, and the
// survey reports it before an attempt is spent. The control is a running instance.
func TestNoRebootWhileCivoIsAtWork(t *testing.T) {
	t.Parallel()
	for status, busy := range map[string]bool{building: true, deleting: true, active: false} {
		t.Run(status, func(t *testing.T) {
			sim := provider(t, func(o *civosim.Options) {
				o.Instances = []civosim.Instance{{ID: "i-1", Hostname: "node-1", Status: status}}
			})
			c := client(t, sim.URL())
			s := Rebooter{c}.Survey(t.Context(), machine1)
			if !busy {
				require.Empty(t, s.Trouble)
				require.NoError(t, c.Reboot(t.Context(), node1, nil))
				require.Len(t, sim.Done(civosim.Any), 1)
				return
			}
			require.Contains(t, s.Trouble, "the instance is "+status)
			require.False(t, s.Fleetwide, "it is this machine's trouble")
			requireRefused(t, c.Reboot(t.Context(), node1, nil), reasonInTransition, "the instance is "+status)
			requireRefused(t, c.SoftReboot(t.Context(), node1, nil), reasonInTransition, "the instance is "+status)
			require.Empty(t, sim.Done(civosim.Any))
			said := Rebooter{c}.Testify(t.Context(), machine1, signs.Sign{Kind: signs.NotRunning})
			require.Contains(t, said.Saw, "Civo says that the instance is", "the witness still reads it")
		})
	}
}

// TestCivoTestifies: only Civo's report that the machine's own instance does not run shows a fault.
// A machine that Civo does not know or is at work on, and a missing answer, show nothing.
func TestCivoTestifies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status  string
		machine string // its provider ID
		answer  signs.Answer
		saw     string
	}{
		"it runs":                   {"ACTIVE", "civo://i-1", signs.Well, `Civo says that the instance is "ACTIVE"`},
		"it is off":                 {"SHUTOFF", "civo://i-1", signs.Ill, `Civo says that the instance is "SHUTOFF"`},
		"it is stopped":             {"STOPPED", "civo://i-1", signs.Ill, `Civo says that the instance is "STOPPED"`},
		"it is rebooting":           {"REBOOTING", "civo://i-1", signs.Unknown, `Civo says that the instance is "REBOOTING"`},
		"a status of another day":   {"PONDERING", "civo://i-1", signs.Unknown, `Civo says that the instance is "PONDERING"`},
		"another machine is not it": {"SHUTOFF", "civo://i-2", signs.Unknown, "Civo did not say whether the instance runs"},
	} {
		t.Run(name, func(t *testing.T) {
			sim := provider(t, func(o *civosim.Options) {
				o.Instances = []civosim.Instance{{ID: "i-1", Hostname: "node-1", Status: test.status}}
			})
			m := machine1
			m.ProviderID = test.machine
			said := Rebooter{client(t, sim.URL())}.Testify(t.Context(), m, signs.Sign{Kind: signs.NotRunning})
			require.Equal(t, test.answer, said.Answer, said.Saw)
			require.Contains(t, said.Saw, test.saw)
		})
	}
}
