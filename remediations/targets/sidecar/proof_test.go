package sidecar_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/sidecar"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestALookDoesNotBeginTheProofAgain: between two attempts a sidecar became ready. What is read
// again meanwhile says nothing against it.
func TestALookDoesNotBeginTheProofAgain(t *testing.T) {
	const pending = `
sidecar: {v: 1, id: r1, policy: sidecar-not-ready, cause: {alert: 8b2d1f0c3a4e5d67}, pod: {namespace: sei, name: a-0, uid: pod1}, phase: Pending,
  step: {index: 0, name: mark-ready, attempt: 2}, done: ["mark-ready:1"], began: "<now-3m>", since: "<now-5m>", deadline: "<now+20h>", hold: {reason: SidecarHeld, message: held, since: "<now-1m>"},
  intent: {id: r1-0-1, at: "<now-5m>", uid: pod1, task: t1}}
`
	for name, ask := range map[string]func(*sidecar.State){
		"of Alertmanager": func(s *sidecar.State) { s.LookSince = time.Time{} },
		"of the sidecar":  func(s *sidecar.State) { s.Seen.At = scene.Noon.Add(-lifecycle.LookAgain) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, since := range []time.Time{{}, scene.Noon.Add(-20 * time.Second)} {
				s := scene.ReadSidecar(t, pending).SidecarState(t)
				s.WellSince = since
				ask(s)
				d := sidecar.Decide(s, scene.Noon)
				require.Equal(t, lifecycle.VerbLook, d.Verb, d.Message)
				require.Equal(t, !since.IsZero(), d.Well)
			}
		})
	}
}
