package external

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/testing/providertest"
)

const token = "correct-horse.battery-staple.0123456789"

// TestConformance tests the provider against the contract of all providers, at a real API server.
func TestConformance(t *testing.T) {
	server := providertest.APIServer(t, lab.Shared(t).AdminConfig(), metav1.StatusReasonAlreadyExists)
	var ready chan *world
	providertest.Run(t, providertest.Provider{
		Slow: true,
		DoesNotApply: map[string]string{
			"testimony":                      "a remediator is not asked whether a machine runs",
			"replacement":                    "nothing is replaced",
			"slow":                           "its other side is the API server: where that is slow for seconds, nothing of Drydock works",
			string(providertest.TwoMachines): "the object names a Node, and no two have one name",
			"exchanged at the last moment":   "a remediator knows its Node by its name alone; the look right before it is all there is",
		},
		Start: func(c testing.TB, timeout time.Duration) providertest.World {
			if len(ready) == 0 {
				ready = build(t, 24)
			}
			w := <-ready
			w.T = c
			return w.behind(server, timeout)
		},
	})
}

// behind puts the world behind a wire that misbehaves.
func (w *world) behind(server providertest.HTTPOptions, timeout time.Duration) providertest.World {
	wire := providertest.NewHTTP(w.T, server)
	again := func() engine.Actuator {
		return w.remediator(func(o *Options) { o.API, o.Timeout = &rest.Config{Host: wire.URL(), BearerToken: token}, timeout })
	}
	return providertest.World{
		Actuator: again(), Again: again, Wire: wire, Close: wire.Close, Secrets: []string{token},
		Machine: w.one, Neighbour: w.two, ID: w.one.Node, NeighbourID: w.two.Node,
		Changed: func() []string { return w.asked("SelfNodeRemediation") }, Set: w.scene,
	}
}

func (w *world) scene(which providertest.Scene) engine.Machine {
	switch which {
	case providertest.NoMachine:
		w.DropNode(w.one.Node)
	case providertest.AnotherOfItsName:
		w.DropNode(w.one.Node)
		w.node(w.one.Node)
	case providertest.ItsIDIsAnothers:
		w.PatchNode(w.one.Node, m{"spec": m{"providerID": "lab://another"}})
	case providertest.TwoMachines:
	}
	return w.one
}
