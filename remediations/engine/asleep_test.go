package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/location"
)

// TestAMachineThatSleptLooksAgain: the machine is suspended between an observation and the
// decision, and its monotonic clock does not count that time. Earlier observations prove nothing
// then.
func TestAMachineThatSleptLooksAgain(t *testing.T) {
	for name, c := range map[string]struct{ sleeps, silenced bool }{
		"it slept, and somebody made a silence": {true, true},
		"it slept, and nobody did":              {true, false},
		"it was awake, and somebody did":        {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				i := w.start()
				i.slept.Store(0)
				w.pass(16 * time.Second)
				w.do(func() {
					w.lookTakes, i.asleepInLook = 40*time.Second, c.sleeps
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(5 * time.Second)
				w.do(func() { w.lookTakes, w.machines["n0"].silenced = 0, c.silenced })
				w.pass(38 * time.Second)
				w.do(func() { i.asleepInLook = false })
				w.pass(2 * time.Minute)
				require.Equal(t, !c.silenced, w.callCount() == 1)
				if c.silenced {
					require.Equal(t, remediations.ReasonSilenced, w.recordOf("n0").Hold.Reason)
					w.do(func() { w.machines["n0"].silenced = false })
					w.pass(2 * time.Minute)
				}
				require.Equal(t, 1, w.callCount())
			})
		})
	}
}

// TestObservationsBeforeASleepAreForgotten: all observations from before the sleep are forgotten,
// and none from while the machine was awake.
func TestObservationsBeforeASleepAreForgotten(t *testing.T) {
	then := time.Now()
	sign := signs.Sign{Kind: signs.StaleLease}
	for name, c := range map[string]struct {
		awake, wall time.Duration
		forgets     bool
	}{
		"awake":                  {time.Minute, time.Minute, false},
		"suspended":              {time.Second, time.Hour, true},
		"its clock was set back": {time.Minute, -time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := sleeper{since: then, awake: c.awake, wall: c.wall}.Now()
			p := &pass{Engine: &Engine{word: &alerts.Snapshot{AskedAt: then}, heartbeats: &signs.Heartbeats{ReadAt: then}}, now: now}
			m := &memory{
				lookSince: then, targetMemory: targetMemory{wellSince: then}, lease: &signs.Lease{ReadAt: then}, survey: &remediations.Survey{At: then},
				replacement: &remediations.Replacement{Asked: remediations.Asked{At: then}}, pods: &remediations.PodProof{Asked: remediations.Asked{At: then}},
				read: map[signs.Sign]signs.Testimony{sign: {At: then}},
			}
			p.forgetTorn(m)
			beside := &targetMemory{seen: &location.Observation{At: then}, seenAt: then, wellSince: then}
			beside.forgetTorn(now)
			for what, gone := range map[string]bool{
				"word": p.word == nil, "leases": p.heartbeats == nil, "look": m.lookSince.IsZero(), "well": m.wellSince.IsZero(), "lease": m.lease == nil,
				"survey": m.survey == nil, "replacement": m.replacement == nil, "pods": m.pods == nil, "witness": len(m.read) == 0,
				"target": beside.seen == nil, "well target": beside.wellSince.IsZero(),
			} {
				require.Equal(t, c.forgets, gone, what)
			}
		})
	}
}

// TestALastLookThatTakesTooLongMakesNoCall: the intent became too old while the signs were read.
func TestALastLookThatTakesTooLongMakesNoCall(t *testing.T) {
	for name, takes := range map[string]time.Duration{"a moment": time.Second, "too long": 11 * time.Second} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			clock := &sleeper{since: now}
			p := &pass{Engine: &Engine{core: wholeCore(), Options: Options{Clock: clock, Fleet: fresh{}}}, ctx: t.Context(), now: now}
			err := p.mayStill("n0", func(context.Context, *corev1.Node) error {
				clock.awake, clock.wall = takes, takes
				return nil
			})()
			require.Equal(t, takes < IntentGood, err == nil, "%v", err)
		})
	}
}
