package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

// TestAHoldIsLookedAtAgainWhenItEnds: the call follows at the end of the hold, and does not wait
// for the next poll of the Alertmanagers.
func TestAHoldIsLookedAtAgainWhenItEnds(t *testing.T) {
	c := modelConfig()
	c.Policies[0].For = 37 * time.Second
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second) // the next polls are 14 s, 29 s and 44 s from here
		w.do(func() {
			w.ail("n0", 1)
			w.post("n0", remediations.StatusFiring)
		})
		w.pass(36 * time.Second)
		require.Zero(t, w.callCount())
		w.pass(4 * time.Second)
		require.Equal(t, 1, w.callCount())
	})
}

// TestAWriteThatDidNotSucceedIsMadeAgainSoon: it is repeated at once after a conflict, and within
// seconds after any other error. It does not wait for the next poll.
func TestAWriteThatDidNotSucceedIsMadeAgainSoon(t *testing.T) {
	opens := func(faults ...string) (after time.Duration) {
		inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
			w.start()
			w.pass(16 * time.Second)
			w.do(func() {
				w.replacePod(podName(0), "n0")
				w.postPod(podName(0))
				w.faults["write"] = faults
			})
			began := time.Now()
			require.True(t, w.until(30*time.Second, func() bool { return w.pod(podName(0)).open }))
			after = time.Since(began)
			require.Empty(t, at(w, func() []string { return w.faults["write"] }), "the control: it did not succeed")
			w.pass(2 * time.Minute)
			requireNoTrace(t, w)
		})
		return after
	}
	whole := opens()
	require.LessOrEqual(t, opens("conflict"), whole+time.Second)
	require.LessOrEqual(t, opens("lost"), whole+5*time.Second)
}

// TestOnlyWhatAGuardHoldsCountsAsHeld.
func TestOnlyWhatAGuardHoldsCountsAsHeld(t *testing.T) {
	policy := &remediations.Policy{Name: "p"}
	for name, c := range map[string]struct {
		d    lifecycle.Decision
		held int
	}{
		"a guard holds it":      {lifecycle.Decision{Verb: lifecycle.VerbHold, Reason: remediations.ReasonPaused, Policy: policy}, 1},
		"it waits":              {lifecycle.Decision{Verb: lifecycle.VerbWait, Policy: policy}, 0},
		"of no policy any more": {lifecycle.Decision{Verb: lifecycle.VerbHold, Reason: remediations.ReasonPaused}, 0},
	} {
		p := &pass{tally: newTally()}
		p.tallied(nil, c.d)
		require.Len(t, p.tally.holds, c.held, name)
		require.Empty(t, p.tally.repairs, name)
	}
}

// word is a witness outside of the cluster, for example a provider of machines.
type word func() signs.Answer

func (says word) Testify(context.Context, Machine, signs.Sign) signs.Testimony {
	return signs.Testimony{Answer: says(), Saw: "what the provider says"}
}

// TestAProviderIsAskedOnceMoreBeforeItsCall: the question is whether the machine is still not
// running.
func TestAProviderIsAskedOnceMoreBeforeItsCall(t *testing.T) {
	for name, then := range map[string]signs.Answer{"it is still off": signs.Ill, "it runs by now": signs.Well} {
		t.Run(name, func(t *testing.T) {
			c := modelConfig()
			c.Policies[0].Witness = &signs.Witness{Signs: []signs.Sign{{Kind: signs.NotRunning}}}
			inWorld(t, c, 6, func(t *testing.T, w *world) {
				w.witnesses = map[signs.Kind]Witness{signs.NotRunning: word(func() signs.Answer {
					if r := at(w, func() *remediations.Record { return w.record("n0") }); r != nil && r.Phase == remediations.PhaseActing {
						return then
					}
					return signs.Ill
				})}
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(30 * time.Second)
				require.Equal(t, then == signs.Ill, w.callCount() == 1)
			})
		})
	}
}
