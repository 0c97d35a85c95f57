package clusterapi

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

// TestConformance tests each form of the request for a replacement against the contract of all
// providers, at a real API server.
func TestConformance(t *testing.T) {
	server := providertest.APIServer(t, lab.Shared(t).AdminConfig(), metav1.StatusReasonConflict)
	const same = "the looks before are the same for each way"
	for _, of := range []way{annotate, mark, remove} {
		t.Run(string(of), func(t *testing.T) {
			not := map[string]string{"testimony": "who replaces machines is not asked whether they run", "slow": "its other side is the API server: where that is slow for seconds, nothing of Drydock works"}
			if of != annotate {
				not["one look"], not["every look"], not["survey"], not["replacement"] = same, same, same, same
			}
			var ready chan *world
			providertest.Run(t, providertest.Provider{
				DoesNotApply: not, Slow: true,
				Start: func(c testing.TB, timeout time.Duration) providertest.World {
					if len(ready) == 0 {
						ready = build(t, 24, func(w *world) {
							if of == annotate {
								w.check("workers", nil)
							}
						})
					}
					w := <-ready
					w.T = c
					return w.behind(server, of, timeout)
				},
			})
		})
	}
}

// behind puts the world behind a wire that misbehaves.
func (w *world) behind(server providertest.HTTPOptions, of way, timeout time.Duration) providertest.World {
	wire := providertest.NewHTTP(w.T, server)
	again := func() engine.Actuator {
		return w.replacer(func(o *Options) {
			o.API, o.Timeout, o.WithoutHealthCheck = &rest.Config{Host: wire.URL(), BearerToken: token}, timeout, deletes(of == remove)
		})
	}
	return providertest.World{
		Actuator: again(), Again: again, Wire: wire, Close: wire.Close, Secrets: []string{token},
		Machine: node1, Neighbour: node10, ID: string(w.Get("Machine", "one").GetUID()), NeighbourID: string(w.Get("Machine", "ten").GetUID()),
		Changed: w.asked, Set: w.scene, Stage: w.stage,
	}
}

func (w *world) scene(which providertest.Scene) engine.Machine {
	switch which {
	case providertest.NoMachine:
		w.Delete("Machine", "one")
	case providertest.TwoMachines:
		w.machine("twin", "node-7", "lab://1")
	case providertest.AnotherOfItsName:
		w.Delete("Machine", "one")
		w.machine("one", "node-1", "lab://2")
	case providertest.ItsIDIsAnothers:
		w.Patch("Machine", "one", m{"status": m{"nodeRef": m{"name": "node-7"}}}, "status")
	}
	return node1
}

func (w *world) stage(which providertest.Stage) []string {
	fresh := func(name string) {
		w.later()
		w.machine(name, "node-3", "lab://3")
	}
	seen := func(replicas int) { w.Patch("MachineSet", "pool", m{"status": m{"replicas": replicas}}, "status") }
	switch which {
	case providertest.Wanted: // the provider promises another machine
	case providertest.OldLingers:
	case providertest.NewFirst:
		fresh("three")
	case providertest.Holes:
		fresh("three")
		w.Delete("Machine", "one")
		w.Delete("Machine", "ten")
	case providertest.Nothing: // as after a move to another management cluster
		w.Delete("Machine", "one")
		w.Delete("Machine", "ten")
		w.Delete("MachineSet", "pool")
		w.Delete("Cluster", "prod")
	case providertest.OldGone:
		w.Delete("Machine", "one")
		seen(1)
	case providertest.NameAgain:
		w.later()
		w.Delete("Machine", "one")
		fresh("one")
	case providertest.Whole:
		fresh("three")
		w.Delete("Machine", "one")
	}
	return []string{"lab://3"}
}
