package annotation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/annotation/settings"
	"drydock.dev/drydock/remediations/testing/providertest"
)

const token = "correct-horse.battery-staple.0123456789"

// TestConformanceOfMetal3 tests the preset against the contract of all providers, at a real API
// server.
func TestConformanceOfMetal3(t *testing.T) {
	server := providertest.APIServer(t, lab.Shared(t).AdminConfig(), metav1.StatusReasonConflict)
	var ready chan *world
	providertest.Run(t, providertest.Provider{
		Slow: true,
		DoesNotApply: map[string]string{
			"testimony":   "the operator's word on the power is not asked for as a witness",
			"replacement": "nothing is replaced",
			"slow":        "its other side is the API server: where that is slow for seconds, nothing of Drydock works",
		},
		Start: func(c testing.TB, timeout time.Duration) providertest.World {
			if len(ready) == 0 {
				ready = build(t, 24)
			}
			w := <-ready
			w.T = c
			wire := providertest.NewHTTP(c, server)
			again := func() engine.Actuator {
				of := settings.Presets[settings.Metal3]
				of.Preset, of.Namespace, of.Timeout = settings.Metal3, w.Name, timeout
				return rebooter(c, of, &rest.Config{Host: wire.URL(), BearerToken: token})
			}
			return providertest.World{
				Actuator: again(), Again: again, Wire: wire, Close: wire.Close, Secrets: []string{token},
				Machine: w.a, Neighbour: w.b, ID: "host-a", NeighbourID: "host-b",
				Changed: w.asked, Set: w.scene,
			}
		},
	})
}

func (w *world) scene(which providertest.Scene) engine.Machine {
	switch which {
	case providertest.NoMachine:
		w.Delete("BareMetalHost", "host-a")
	case providertest.TwoMachines:
		w.host("host-c", "m3m-a")
	case providertest.AnotherOfItsName:
		w.Delete("BareMetalHost", "host-a")
		w.host("host-a", "m3m-x")
	case providertest.ItsIDIsAnothers:
		w.Patch("Machine", "machine-a", m{"status": m{"nodeRef": m{"name": "another"}}}, "status")
	}
	return w.a
}
