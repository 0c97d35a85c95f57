package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// continues is a plan whose reboot is skipped if its provider cannot be asked about the machine.
func continues() *remediations.Config {
	c := wholeConfig()
	c.Policies[0].Plan[0].ContinueUnreachable = true
	return c
}

// out is a provider that answers about no machine.
var out = providerMood{trouble: outageSays, fleetwide: true, unreached: true}

// failFor begins a repair of n0 while its provider has that mood.
func (w *world) failFor(change func()) {
	w.start()
	w.pass(16 * time.Second)
	w.do(func() { change(); w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
}

// skipped reports whether the reboot of n0 was skipped. The world is locked.
func (w *world) skipped() bool {
	r := w.record("n0")
	return r != nil && len(r.Passed) > 0
}

// TestAProvidersOutageNeverContinuesAPlan: onUnreachable: continue counts from when the machine
// alone is out of reach, whatever was before. Time without a question does not count. A new leader
// continues the count.
func TestAProvidersOutageNeverContinuesAPlan(t *testing.T) {
	mute := func(w *world) { w.mood, w.mute = providerMood{}, "n0" }
	for name, c := range map[string]struct {
		// before is what happens until the machine alone is out of reach for good. counts is the
		// part of that time that counts, too.
		before func(t *testing.T, w *world)
		counts time.Duration
	}{
		"control: the machine from the start": {func(_ *testing.T, w *world) { w.failFor(func() { mute(w) }) }, 0},
		"an outage from the start": {func(_ *testing.T, w *world) {
			w.failFor(func() { w.mood = out })
			w.pass(20 * time.Minute)
		}, 0},
		"the machine, then an outage": {func(_ *testing.T, w *world) {
			w.failFor(func() { mute(w) })
			w.pass(9 * time.Minute)
			w.do(func() { w.mood = out })
			w.pass(20 * time.Minute)
		}, 0},
		"the machine, then a short outage": {func(_ *testing.T, w *world) {
			w.failFor(func() { mute(w) })
			w.pass(9 * time.Minute)
			w.do(func() { w.mood = out })
			w.pass(90 * time.Second)
		}, 0},
		"the machine, then a short outage and another leader": {func(_ *testing.T, w *world) {
			w.failFor(func() { mute(w) })
			w.pass(9 * time.Minute)
			w.do(func() { w.mood = out })
			w.pass(90 * time.Second)
			w.do(w.last().cancel)
			w.pass(6 * time.Second)
			w.do(func() { mute(w) })
			w.startWith(w.config, 0)
		}, 0},
		"an outage at the calls": {func(t *testing.T, w *world) {
			w.failFor(func() { w.mood.unread = true })
			w.pass(40 * time.Minute)
			require.GreaterOrEqual(t, w.recordOf("n0").Unreached, 5)
		}, 0},
		"the machine, then nobody leads": {func(_ *testing.T, w *world) {
			w.failFor(func() { mute(w) })
			w.pass(time.Minute)
			w.do(w.last().cancel)
			w.pass(20 * time.Minute)
			w.startWith(w.config, 0)
		}, 0},
		"the machine, then another leader": {func(_ *testing.T, w *world) {
			w.failFor(func() { mute(w) })
			w.pass(6 * time.Minute)
			w.restart(w.config)
		}, 6 * time.Minute},
		"the machine, then a process that dies": {func(_ *testing.T, w *world) {
			w.failFor(func() { mute(w) })
			w.pass(6 * time.Minute)
			i := w.last()
			w.do(func() { i.dead = true })
			w.pass(15 * time.Second)
			w.startWith(w.config, 0)
		}, 6 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, continues(), 6, func(t *testing.T, w *world) {
				c.before(t, w)
				require.False(t, at(w, w.skipped))
				w.do(func() { mute(w) })
				began := time.Now()
				if c.counts == 0 {
					w.pass(10*time.Minute - 5*time.Second)
					require.False(t, at(w, w.skipped), "%v", w.recordOf("n0").Passed)
					require.Equal(t, remediations.ReasonProviderUnreachable, w.recordOf("n0").Hold.Reason)
				}
				require.True(t, w.until(15*time.Minute, w.skipped))
				require.Less(t, time.Since(began)+c.counts, 17*time.Minute)
				require.Less(t, time.Since(began), 16*time.Minute-c.counts)
				require.Equal(t, "reboot", w.recordOf("n0").Passed[0].Name)
				require.Contains(t, w.recordOf("n0").Passed[0].Why, muteSays)
			})
		})
	}
}

// TestFiveCallsThatFailInAnOutageDoNotContinueThePlan: five calls that fail because of the machine
// do continue it. They are counted again after the outage and by each new leader. An error without
// its own scope counts for no machine.
func TestFiveCallsThatFailInAnOutageDoNotContinueThePlan(t *testing.T) {
	for name, c := range map[string]struct {
		first func(w *world)
		skips bool
	}{
		"control: the machine":     {func(w *world) { w.odd = map[string]error{"n0": ofMachine{ErrPassing}} }, true},
		"an outage":                {func(w *world) { w.mood.unread = true }, false},
		"nobody says whom":         {func(w *world) { w.odd = map[string]error{"n0": ErrPassing} }, false},
		"the account of a machine": {func(w *world) { w.odd = map[string]error{"n0": ofMachine{ErrAccount}} }, false},
		"Drydock itself is late":   {func(w *world) { w.mood.before = 12 * time.Second }, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, continues(), 6, func(t *testing.T, w *world) {
				w.failFor(func() { c.first(w) })
				w.pass(2 * time.Hour)
				require.Equal(t, c.skips, at(w, w.skipped))
				if c.skips {
					return
				}
				r := w.recordOf("n0")
				require.GreaterOrEqual(t, r.Unreached, 5)
				require.Zero(t, w.callCount())
				require.Len(t, heldEvents(w, remediations.ReasonProviderUnreachable), 1, "people are told")

				w.do(func() { w.mood, w.odd = providerMood{}, map[string]error{"n0": ofMachine{ErrPassing}} })
				alone := func(n int) func() bool {
					return func() bool { r := w.record("n0"); return r != nil && r.Alone == n }
				}
				require.True(t, w.until(30*time.Minute, alone(3)))
				w.restart(w.config)
				require.True(t, w.until(30*time.Minute, alone(5)))
				require.False(t, at(w, w.skipped))
				require.True(t, w.until(10*time.Minute, w.skipped))
			})
		})
	}
}

// TestAProviderThatAnswersAboutNoMachineIsUnreachable: people can read that the provider is the
// cause, since when and why. There is one fleet-wide hold, and no step costs an attempt. When the
// provider answers, the repair continues.
func TestAProviderThatAnswersAboutNoMachineIsUnreachable(t *testing.T) {
	inWorld(t, continues(), 12, func(t *testing.T, w *world) {
		w.failFor(func() { w.mood = out })
		w.do(func() { w.ail("n1", 1); w.post("n1", remediations.StatusFiring) })
		w.pass(30 * time.Second)
		began := time.Now()
		w.pass(20 * time.Minute)
		holds := at(w, func() map[remediations.Reason]string { return w.book().Status.Holds })
		require.NotContains(t, holds, remediations.ReasonProviderAbsent)
		says := holds[remediations.ReasonProviderUnreachable]
		require.Regexp(t, `^the provider of the step reboot has given no usable answer about any machine since \d{4}-\S+Z; the last one: the API does not answer$`, says)
		since, err := time.Parse(time.RFC3339, says[len("the provider of the step reboot has given no usable answer about any machine since "):][:len("2006-01-02T15:04:05Z")])
		require.NoError(t, err)
		require.WithinDuration(t, began, since, 40*time.Second)
		require.Equal(t, 1, w.heldAs(remediations.ReasonProviderUnreachable), "it is told once for all")
		require.InDelta(t, 2, w.last().series(t, "drydock_holds")["node-not-readyProviderUnreachable"], 0)
		require.Nil(t, w.recordOf("n0"), "the fleet's trouble is no write on a Node")
		require.Nil(t, w.recordOf("n1"))

		w.do(func() { w.mood = providerMood{} })
		w.pass(20 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeRecovered}, w.outcomes())
		require.NotContains(t, at(w, func() map[remediations.Reason]string { return w.book().Status.Holds }), remediations.ReasonProviderUnreachable)
		w.do(func() { w.mood = out; w.ail("n2", 1); w.post("n2", remediations.StatusFiring) })
		w.pass(time.Minute)
		require.NotEqual(t, says, at(w, func() string { return w.book().Status.Holds[remediations.ReasonProviderUnreachable] }), "another outage has another beginning")
	})
}

// waits is a refusal whose provider asks for a wait before the next call.
type waits struct{ time.Duration }

func (w waits) Error() string       { return "too many requests" }
func (waits) Is(target error) bool  { return target == ErrLater }
func (w waits) Wait() time.Duration { return w.Duration }

// TestTheNextCallWaitsAsLongAsTheProviderAsks: it waits even if another process makes the call.
func TestTheNextCallWaitsAsLongAsTheProviderAsks(t *testing.T) {
	for name, c := range map[string]struct {
		asks, least, most time.Duration
		restart           bool
	}{
		"control: it does not say":  {0, 59 * time.Second, 2 * time.Minute, false},
		"four minutes":              {4 * time.Minute, 4 * time.Minute, 5 * time.Minute, false},
		"four minutes, new process": {4 * time.Minute, 4 * time.Minute, 5 * time.Minute, true},
		"a day, which is too long":  {24 * time.Hour, 5 * time.Minute, 6 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", 1); w.odd = map[string]error{"n0": waits{c.asks}} })
				require.True(t, w.until(5*time.Minute, func() bool { return len(w.tries["n0"]) == 1 }))
				refused := time.Now()
				w.do(func() { delete(w.odd, "n0") })
				if c.restart {
					require.True(t, w.until(time.Minute, func() bool { r := w.record("n0"); return r != nil && r.Withheld() }))
					w.restart(w.config)
				}
				require.True(t, w.until(10*time.Minute, func() bool { return len(w.calls) == 1 }))
				require.GreaterOrEqual(t, at(w, func() time.Duration { return w.calls[0].at.Sub(refused) }), c.least)
				require.LessOrEqual(t, time.Since(refused), c.most)
			})
		})
	}
}
