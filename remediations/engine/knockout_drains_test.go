package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

func whole(c *remediations.Config) { *c = *wholeConfig() }

// drained is the scenario of a drain during which something happens.
func drained(then func(w *world)) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		inMidDrain(t, w)
		w.do(func() { then(w) })
		w.pass(5 * time.Minute)
	}
}

// goesOn makes a drain continue whatever Decide returns.
func (h *hands) goesOn() {
	h.decision(func(s *lifecycle.State, d *lifecycle.Decision) {
		if r := s.Journal.Record; r != nil && r.Phase == remediations.PhaseActing && r.Step.Name == "drain" && s.Call != nil && s.Call.Outcome == "" {
			*d = lifecycle.Decision{Verb: lifecycle.VerbWait, Policy: d.Policy}
		}
	})
}

// replaced is the scenario of a machine that no reboot cures.
func replaced(first func(w *world)) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		w.do(func() { first(w) })
		w.during(t, "replace")
		w.pass(25 * time.Minute)
	}
}

// drainKnockOuts are the knock-outs of a drain: each reason that must end the drain is removed.
func drainKnockOuts() map[string]knockOut {
	ignores := func(h *hands) { h.goesOn() }
	all := map[string]knockOut{
		"4: a drain ends with its process": {
			config: whole, take: func(h *hands) { h.w.do(func() { h.w.lies.deafDrains = true }) },
			tale: func(t *testing.T, w *world) {
				inMidDrain(t, w)
				last := w.last()
				w.do(last.cancel)
				w.pass(time.Minute)
			},
			speaks: "4: an eviction on n0 by a process",
		},
		"4: a drain ends with its record": {
			config: whole, take: func(h *hands) { h.w.do(func() { h.w.lies.deafDrains, h.w.lies.blindDrains = true, true }) },
			tale: drained(func(w *world) { cancel(w) }), speaks: "4: an eviction on n0, where no drain is on record",
		},
		"1: no drain in observe mode": {
			config: whole, take: func(h *hands) { h.config(enforcing) }, speaks: "1: an eviction on n0",
			tale: func(t *testing.T, w *world) {
				inMidDrain(t, w)
				observe := *w.config
				p := *observe.Policies[0]
				p.Mode, observe.Policies = remediations.ModeObserve, []*remediations.Policy{&p}
				w.restart(&observe)
				w.pass(time.Minute)
			},
		},
		"8: an uncordon ends a drain": {
			config: whole, speaks: "8: an eviction on n0, which was uncordoned",
			take: func(h *hands) {
				h.w.do(func() { h.w.lies.blindDrains = true })
				h.goesOn()
			},
			tale: drained(func(w *world) { w.edit("n0", func(n *corev1.Node) { n.Spec.Unschedulable = false }) }),
		},
	}
	for name, c := range map[string]struct {
		then   func(w *world)
		speaks string
	}{
		"5: a silence":                 {silence, "5: an eviction on n0"},
		"5: an inhibition":             {func(w *world) { w.machines["n0"].inhibited = true }, "5: an eviction on n0"},
		"5: a word that is too old":    {func(w *world) { w.lookTakes = 10 * time.Minute }, "5: an eviction on n0"},
		"6: leases that nobody renews": {func(w *world) { w.leasesFrozen = time.Now() }, "6: something was done to n0, and no lease"},
		"6: leases that nobody counts": {func(w *world) { w.always["heartbeats"], w.blindSince = "lost", time.Now() }, "6: something was done to n0, and nobody can count"},
		"9: a pause":                   {func(w *world) { w.hold("n0", edit(remediations.PauseKey, "true")) }, "9: an eviction on n0, held since"},
		"9: a cancel":                  {cancel, "9: an eviction for r"},
		"FleetUnhealthy: a storm": {func(w *world) {
			for _, n := range nodeNames[1:5] {
				w.ail(n, 1)
			}
		}, "FleetUnhealthy: an eviction on n0"},
	} {
		take := func(h *hands) {
			ignores(h)
			h.w.core.lookLongest = time.Hour
		}
		all[name+" ends a drain"] = knockOut{config: whole, take: take, tale: drained(c.then), speaks: c.speaks}
	}
	return all
}

// replaceKnockOuts are the knock-outs of a replacement.
func replaceKnockOuts() map[string]knockOut {
	return map[string]knockOut{
		"7: the provider is asked whether the machine was replaced": {
			config: whole, take: func(h *hands) { h.w.do(func() { h.w.lies.provesAnything = true }) },
			tale: replaced(func(w *world) { w.recycling.nodeGoes = 0 }), speaks: "8: n0 is marked out of service, and its machine is there",
		},
		"7: the same machine is no successor": {
			config: whole, speaks: "7: Recovered on n0, which is the same machine",
			take: func(h *hands) {
				h.w.do(func() { h.w.lies.provesAnything = true })
				h.w.core.successorOf = func(_ *ledger.Orphan, _ *remediations.Replacement, nodes []*corev1.Node) *corev1.Node {
					for _, n := range nodes {
						if n.Name == "n0" { // the proof asks again
							n = n.DeepCopy()
							n.Spec.ProviderID = "civo://another"
							return n
						}
					}
					return nil
				}
			},
			tale: func(t *testing.T, w *world) {
				w.do(func() { w.mood.idle = true })
				w.during(t, "drain")
				w.do(func() { // it is Ready again, and its alert continues to fire
					w.machines["n0"].broken, w.machines["n0"].sick = 9, 0
					w.report(w.machines["n0"])
				})
				w.until(10*time.Minute, func() bool { return len(w.calls) == 2 })
				w.do(func() { w.register("n0"); w.heal("n0") })
				w.pass(10 * time.Minute)
			},
		},
		"7: a provider that promises a machine is not believed when it says that none is needed": {
			config: func(c *remediations.Config) {
				whole(c)
				c.Providers = []remediations.Provider{{Name: "cloud", Steps: []string{"replace"}}}
			},
			take: func(h *hands) { h.w.do(func() { h.w.config.Providers[0].PromisesNone = true }) },
			tale: replaced(func(w *world) { w.recycling.joins, w.lies.noneNeeded = 0, true }), speaks: "7: Recovered without a machine, and the provider promises one",
		},
		"7: a replacement outlives its Node": {
			config: whole, take: func(h *hands) { h.w.do(func() { h.w.lies.forgetOrphans = true }) },
			tale: func(t *testing.T, w *world) {
				replaced(func(*world) {})(t, w)
				w.do(w.unaccounted)
			},
			speaks: "7: the machine civo://m0 was replaced",
		},
		"2: the Node of a machine that is being replaced is left alone": {
			config: whole, take: func(h *hands) { h.ledger(func(l *ledger.Ledger) { l.Orphans = nil }) },
			tale: func(t *testing.T, w *world) {
				w.do(func() { w.mood.idle = true; w.config.Limits.Concurrent = many })
				w.during(t, "replace")
				w.pass(10 * time.Second)
				w.do(func() { w.register("n0"); w.post("n0", remediations.StatusFiring) })
				w.pass(5 * time.Minute)
			},
			speaks: "2: an intent on n0, the machine of which",
		},
	}
}

// TestNoSurveyIsHarmless: a survey only saves an attempt that would certainly be refused. A
// provider that is not asked before refuses by itself. The record of a replacement without a survey
// proves nothing: it ends Exhausted.
func TestNoSurveyIsHarmless(t *testing.T) {
	k := knockOut{config: whole, tale: func(t *testing.T, w *world) {
		replaced(func(*world) {})(t, w)
		require.Equal(t, []string{"reboot", "replace"}, w.callsOf())
		require.Len(t, w.toldOf("RepairExhausted"), 1)
	}}
	require.Empty(t, k.run(t, func(h *hands) {
		h.state(func(s *lifecycle.State, now time.Time) {
			for _, step := range []string{"reboot", "replace"} {
				if r := s.Journal.Record; (r == nil && step == "reboot") || (r != nil && r.Step.Name == "drain" && step == "replace") {
					s.Survey = &remediations.Survey{Step: remediations.StepOn{Name: step}, At: now}
				}
			}
		})
	}))
}
