package civo

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

var machine1 = engine.Machine{Node: "node-1", ProviderID: "civo://i-1", Attempt: "abcdef-0-1"}

// TestWhatAnActuatorMakesOfCivosAnswer: refused only where nothing was done, and about the account where no other machine's call
// would succeed either.
func TestWhatAnActuatorMakesOfCivosAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		op      civosim.Op
		fault   civosim.Fault
		outcome remediations.CallOutcome
		account bool
	}{
		"done":                            {civosim.GetInstance, civosim.Slow(0), remediations.CallAccepted, false},
		"the lookup fails":                {civosim.ListInstances, civosim.ServerError(), remediations.CallRefused, false},
		"the lookup is refused":           {civosim.ListInstances, civosim.Unauthorized(), remediations.CallRefused, true},
		"the write is refused":            {civosim.HardReboots, civosim.Failed(), remediations.CallRefused, false},
		"the key is refused at the write": {civosim.HardReboots, civosim.Unauthorized(), remediations.CallRefused, true},
		"the quota is reached":            {civosim.HardReboots, civosim.Quota(), remediations.CallRefused, true},
		"cut":                             {civosim.HardReboots, civosim.Cut(), remediations.CallUnknown, false},
		"a server error at the write":     {civosim.HardReboots, civosim.ServerError(), remediations.CallUnknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			sim := provider(t)
			sim.Inject(tc.op, tc.fault)
			outcome, err := Rebooter{client(t, sim.URL())}.Act(t.Context(), machine1, func() error { return nil })
			require.Equal(t, tc.outcome, outcome, "%v", err)
			require.Equal(t, outcome == remediations.CallAccepted, err == nil)
			require.Equal(t, tc.account, errors.Is(err, engine.ErrAccount), "%v", err)
			if outcome == remediations.CallRefused {
				require.Empty(t, sim.Done(civosim.Any))
			}
		})
	}
}

// TestAnActuatorAsksAtTheLastMoment: what is withheld never leaves.
func TestAnActuatorAsksAtTheLastMoment(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	c := client(t, sim.URL())
	no := errors.New("paused")
	seen := Replacer{c}.Survey(t.Context(), machine1)
	require.Empty(t, seen.Trouble)
	with := machine1
	with.Before = seen.Before
	for name, act := range map[string]func() (remediations.CallOutcome, error){
		"reboot": func() (remediations.CallOutcome, error) {
			return Rebooter{c}.Act(t.Context(), machine1, func() error { return no })
		},
		"soft reboot": func() (remediations.CallOutcome, error) {
			m := machine1
			m.Soft = true
			return Rebooter{c}.Act(t.Context(), m, func() error { return no })
		},
		"replace": func() (remediations.CallOutcome, error) {
			return Replacer{c}.Act(t.Context(), with, func() error { return no })
		},
		"replace without a survey": func() (remediations.CallOutcome, error) {
			return Replacer{c}.Act(t.Context(), machine1, func() error { return nil })
		},
	} {
		outcome, err := act()
		require.Equal(t, remediations.CallRefused, outcome, name)
		require.Error(t, err, name)
		require.Equal(t, name != "replace without a survey", errors.Is(err, no), name)
	}
	require.Empty(t, sim.Done(civosim.Any))
	outcome, err := Replacer{c}.Act(t.Context(), with, func() error { return nil })
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome, "the control")
	require.Len(t, sim.Done(civosim.Recycle), 1)
	require.Eventually(t, func() bool {
		said, err := Replacer{c}.Replaced(t.Context(), with.Before)
		return err == nil && said.MachineGone
	}, 10*time.Second, time.Millisecond, "Civo deletes the machine after its answer")
}

// TestASurveySaysWhoseTroubleItIs, and when it is worth asking again.
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

// TestCivoTestifies: only Civo's word that the machine's own instance does not run shows a fault. A machine that Civo does not know
// or is at work on, and no answer, show nothing.
func TestCivoTestifies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status  string
		machine string // its provider ID
		answer  remediations.Answer
		saw     string
	}{
		"it runs":                   {"ACTIVE", "civo://i-1", remediations.Well, `Civo says that the instance is "ACTIVE"`},
		"it is off":                 {"SHUTOFF", "civo://i-1", remediations.Ill, `Civo says that the instance is "SHUTOFF"`},
		"it is stopped":             {"STOPPED", "civo://i-1", remediations.Ill, `Civo says that the instance is "STOPPED"`},
		"it is rebooting":           {"REBOOTING", "civo://i-1", remediations.Unknown, `Civo says that the instance is "REBOOTING"`},
		"a status of another day":   {"PONDERING", "civo://i-1", remediations.Unknown, `Civo says that the instance is "PONDERING"`},
		"another machine is not it": {"SHUTOFF", "civo://i-2", remediations.Unknown, "Civo did not say whether the instance runs"},
	} {
		t.Run(name, func(t *testing.T) {
			sim := provider(t, func(o *civosim.Options) {
				o.Instances = []civosim.Instance{{ID: "i-1", Hostname: "node-1", Status: test.status}}
			})
			m := machine1
			m.ProviderID = test.machine
			said := Rebooter{client(t, sim.URL())}.Testify(t.Context(), m, remediations.Sign{Kind: remediations.SignNotRunning})
			require.Equal(t, test.answer, said.Answer, said.Saw)
			require.Contains(t, said.Saw, test.saw)
		})
	}
}
