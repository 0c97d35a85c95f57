package karpenter

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

// TestConformance tests the provider against the contract of all providers, at a real API server
// with Karpenter's own kinds.
func TestConformance(t *testing.T) {
	server := providertest.APIServer(t, lab.Shared(t).AdminConfig(), metav1.StatusReasonConflict)
	newWorld(t) // the kinds exist, and the connection is established
	providertest.Run(t, providertest.Provider{
		Slow: true, PromisesNone: true,
		DoesNotApply: map[string]string{
			"slow":                 "its other side is the API server: where that is slow for seconds, nothing of Drydock works",
			"testimony":            "who replaces machines is not asked whether they run",
			"an answer with holes": "the NodeClaim is read by its name, so there is no list that could lack it",
		},
		Start: func(t testing.TB, timeout time.Duration) providertest.World {
			return newWorld(t).behind(server, timeout)
		},
	})
}

// behind puts the world behind a wire that misbehaves.
func (w *world) behind(server providertest.HTTPOptions, timeout time.Duration) providertest.World {
	wire := providertest.NewHTTP(w.t, server)
	again := func() engine.Actuator {
		r := w.replacer(func(o *Options) { o.API, o.Timeout = &rest.Config{Host: wire.URL(), BearerToken: token}, timeout })
		r.Page = 1 << 14 // NodeClaims of all worlds are listed: one page, so that each world has the same requests
		return r
	}
	one := w.machine("one")
	return providertest.World{
		Actuator: again(), Again: again, Wire: wire, Close: func() { wire.Close(); w.end() }, Secrets: []string{token},
		Machine: one, Neighbour: w.machine("ten"), ID: string(w.get("NodeClaim", "one").GetUID()), NeighbourID: string(w.get("NodeClaim", "ten").GetUID()),
		Changed: w.asked, Stage: w.stage,
		Set: func(which providertest.Scene) engine.Machine { w.scene(which); return one },
	}
}

func (w *world) scene(which providertest.Scene) {
	switch which {
	case providertest.NoMachine:
		w.delete("NodeClaim", "one")
	case providertest.TwoMachines:
		w.claim("twin", "one", nil)
	case providertest.AnotherOfItsName:
		w.delete("NodeClaim", "one")
		w.claim("one", "one", nil)
	case providertest.ItsIDIsAnothers:
		w.patch("NodeClaim", "one", m{"status": m{"nodeName": w.name("twin")}}, "status")
	}
}

func (w *world) stage(which providertest.Stage) []string {
	switch which {
	case providertest.NewFirst:
		w.later()
		w.claim("twin", "twin", nil)
	case providertest.Nothing:
		w.gone()
		w.delete("NodeClaim", "ten")
		w.delete("NodePool", "pool")
	case providertest.OldGone:
		w.gone()
	case providertest.Wanted:
		w.gone()
		w.unbound("busy", nil, nil)
	case providertest.NameAgain:
		w.later()
		w.gone()
		w.claim("one", "twin", nil)
	case providertest.Whole:
		w.later()
		w.gone()
		w.claim("twin", "twin", nil)
	case providertest.OldLingers, providertest.Holes:
	}
	return []string{w.id("twin")}
}
