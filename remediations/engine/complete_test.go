package engine

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// outlet is a provider whose call switches a machine off, and which must switch it on again.
type outlet struct {
	w *world
	// dies means that the process is killed when the machine has been switched off.
	dies bool
	// jammed means that the machine cannot be switched on.
	jammed    bool
	off       bool
	offs, ons int
}

func (o *outlet) Act(_ context.Context, m Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if err := mayStill(); err != nil {
		return remediations.CallRefused, err
	}
	dies := false
	o.w.do(func() {
		o.off, o.w.machines[m.Node].up = true, false
		o.offs++
		o.w.report(o.w.machines[m.Node])
		if dies = o.dies; dies {
			o.w.endAll()
		}
	})
	if dies {
		runtime.Goexit()
	}
	return remediations.CallAccepted, nil
}

func (o *outlet) Complete(_ context.Context, m Machine, mayStill func() error) (bool, error) {
	if !at(o.w, func() bool { return o.off }) {
		return true, nil
	}
	if err := mayStill(); err != nil {
		return false, err
	}
	if at(o.w, func() bool { return o.jammed }) {
		return false, errors.New("the outlet is jammed")
	}
	o.w.do(func() {
		o.off = false
		o.ons++
		o.w.reboot(m.Node)
	})
	return false, nil
}

// TestAMachineThatAnAttemptSwitchedOffIsSwitchedOnAgain: this also holds if Drydock was killed in
// between, and if the attempt's time has run out. The machine is switched off only once.
func TestAMachineThatAnAttemptSwitchedOffIsSwitchedOnAgain(t *testing.T) {
	for name, c := range map[string]struct {
		dies bool
		away time.Duration // until the next process starts
		end  remediations.Outcome
	}{
		"not killed":                       {end: remediations.OutcomeRecovered},
		"killed when it was off":           {dies: true, away: 20 * time.Second, end: remediations.OutcomeRecovered},
		"killed, and the time has run out": {dies: true, away: 20 * time.Minute, end: remediations.OutcomeExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, planned("reboot"), 6, func(t *testing.T, w *world) {
				o := &outlet{w: w, dies: c.dies}
				w.actuators = map[string]Actuator{"reboot": o}
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", 1) })
				require.True(t, w.until(2*time.Minute, func() bool { return o.offs == 1 }))
				if c.dies {
					w.pass(c.away)
					require.True(t, at(w, func() bool { return o.off }), "the control: nobody else switches it on")
					o.dies = false
					w.start()
				}
				require.True(t, w.until(2*time.Minute, func() bool { return o.ons == 1 }), "it is still off")
				w.pass(20 * time.Minute)
				require.Equal(t, []remediations.Outcome{c.end}, w.outcomes())
				require.Equal(t, []int{1, 1}, at(w, func() []int { return []int{o.offs, o.ons} }))
				require.True(t, at(w, func() bool { return w.machines["n0"].up }))
			})
		})
	}
}

// TestAMachineOfAPersonIsNotSwitchedOn: Drydock does not switch a machine on while a person has
// paused it. After the machine has booted once, Drydock also leaves it off if a person switches it
// off.
func TestAMachineOfAPersonIsNotSwitchedOn(t *testing.T) {
	inWorld(t, planned("reboot"), 6, func(t *testing.T, w *world) {
		o := &outlet{w: w, jammed: true}
		w.actuators = map[string]Actuator{"reboot": o}
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.ail("n0", 2) }) // a boot does not end the repair
		require.True(t, w.until(2*time.Minute, func() bool { return o.offs == 1 }))
		w.pass(40 * time.Second)
		blocked := w.toldOf("RepairBlocked")
		require.Len(t, blocked, 1)
		require.Contains(t, blocked[0].Note, "the outlet is jammed")

		w.do(func() { w.hold("n0", edit(remediations.PauseKey, "true")); o.jammed = false })
		w.pass(time.Minute)
		require.Zero(t, at(w, func() int { return o.ons }))
		w.do(func() {
			w.edit("n0", func(n *corev1.Node) { delete(n.Annotations, remediations.PauseKey) })
			delete(w.paused, "n0")
		})
		require.True(t, w.until(time.Minute, func() bool { return o.ons == 1 }), "the control: without the pause")

		require.True(t, w.until(5*time.Minute, func() bool { return w.machines["n0"].up }))
		w.do(func() { o.off = true })
		w.pass(time.Minute)
		require.Equal(t, 1, at(w, func() int { return o.ons }))
	})
}
