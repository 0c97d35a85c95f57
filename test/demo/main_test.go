package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
)

func patient() setting {
	return setting{nodeGrace: lab.DefaultNodeGrace, within: lab.Patience, stormCooldown: 5 * time.Second}
}

// The demo itself checks each thing that it prints: the call, the cure, the silence that holds a
// repair, the drain that is refused.
func TestTheDemoDoesWhatItPrints(t *testing.T) {
	require.NoError(t, demo(t.Context(), patient()))
}

// Drydock is killed when the provider has rebooted the machine and before Drydock has the answer.
// The demo must end as ever, and the provider must have rebooted each of its two machines once.
// This is the main job, from the fault to the proven cure, with one crash: make test runs it.
func TestTheMainJobWithACrashInTheMiddle(t *testing.T) {
	s, crashes := patient(), 0
	var reboots func() []civosim.Call
	restarted := make(chan error, 1)
	s.disturb = func(l *lab.Lab, civo *lab.Civo, drydock *lab.Drydock) {
		reboots = func() []civosim.Call { return civo.Done(civosim.HardReboots) }
		civo.OnReboot(func() {
			civo.OnReboot(nil)
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
