package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
)

func patient() setting {
	return setting{provider: "civo", nodeGrace: lab.DefaultNodeGrace, within: lab.Patience, stormCooldown: 5 * time.Second}
}

// The demo itself checks each thing that it prints: the call, the cure, the silence that holds a
// repair, and the refused drain.
func TestTheDemoDoesWhatItPrints(t *testing.T) {
	require.NoError(t, demo(t.Context(), patient()))
}

// The same demo with a program of the user, the receiver of deploy/examples. It power-cycles each
// of the two machines once.
func TestTheDemoOverHTTPDoesWhatItPrints(t *testing.T) {
	s := patient()
	s.provider = "http"
	var reboots func() []string
	s.disturb = func(_ *lab.Lab, m *machines, _ *lab.Drydock) { reboots = m.reboots }

	require.NoError(t, demo(t.Context(), s))

	require.Equal(t, []string{"power-cycle outlet-2", "power-cycle outlet-3"}, reboots())
}

// An unknown provider ends the demo before anything is built.
func TestTheDemoNamesItsProviders(t *testing.T) {
	s := patient()
	s.provider = "https"

	require.EqualError(t, demo(t.Context(), s), `PROVIDER is "https", and must be civo or http`)
}

// Drydock is killed after the provider has rebooted the machine and before Drydock has the answer.
// The demo must end as usual, and the provider must have rebooted each of its two machines once.
// This is the main job, from the fault to the proven cure, with one crash. `make test` runs it.
func TestTheMainJobWithACrashInTheMiddle(t *testing.T) {
	s, crashes := patient(), 0
	var reboots func() []civosim.Call
	restarted := make(chan error, 1)
	s.disturb = func(l *lab.Lab, m *machines, drydock *lab.Drydock) {
		reboots = func() []civosim.Call { return m.civo.Done(civosim.HardReboots) }
		m.civo.OnReboot(func() {
			m.civo.OnReboot(nil)
			crashes++
			drydock.Kill()
			go func() { restarted <- l.Restart(t.Context(), drydock) }()
		})
	}

	require.NoError(t, demo(t.Context(), s))

	require.Equal(t, 1, crashes)
	require.NoError(t, <-restarted)
	machines := map[string]int{}
	for _, call := range reboots() {
		machines[call.Path]++
	}
	require.Len(t, machines, 2, "node-2 and node-3 were rebooted")
	for path, times := range machines {
		require.Equal(t, 1, times, path)
	}
}
