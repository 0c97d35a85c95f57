package engine

import (
	"context"
	"runtime"

	"drydock.dev/drydock/remediations"
)

// outletPort reboots machines as a fence agent does: Act switches a machine off, and Complete
// switches it on.
type outletPort struct{ provider }

// Complete switches on a machine that is off. It reports that nothing is left when the machine is
// on.
func (r outletPort) Complete(_ context.Context, m Machine, mayStill func() error) (done bool, err error) {
	fatal := r.enter("complete "+m.Node, true)
	if at(r.w, func() bool { return !r.w.isOff(m) }) {
		return true, nil
	}
	if err := mayStill(); err != nil {
		return false, err
	}
	r.w.do(func() {
		if r.w.isOff(m) {
			r.w.checkOn(m)
			r.w.reboot(m.Node)
		}
		r.dead = r.dead || fatal
	})
	if fatal {
		runtime.Goexit()
	}
	return false, nil
}

func (w *world) isOff(m Machine) bool {
	x := w.machines[m.Node]
	return x != nil && x.providerID == m.ProviderID && x.recycled.IsZero() && !x.offSince.IsZero()
}

// checkOn checks a request to switch a machine on. By invariant 8 Drydock completes only its
// reboots: a machine that the step powerOff switched off stays off. By invariant 9 it respects a
// person's pause.
func (w *world) checkOn(m Machine) {
	x := w.machines[m.Node]
	switch since, held := w.paused[m.Node]; {
	case held:
		w.fail("9: %s is switched on, held since %s", m.Node, since)
	case x.offBy != m.Attempt:
		w.fail("8: %s is switched on for the attempt %s, and %q switched it off", m.Node, m.Attempt, x.offBy)
	}
}

// staysOff reports whether a reboot on record has switched the machine off, and it is still off.
func (w *world) staysOff(m *machine) bool {
	r, n := w.record(m.name), w.nodes[m.name]
	return w.outlets && !m.offSince.IsZero() && n != nil && r != nil && r.Intent != nil && r.Intent.ID == m.offBy &&
		remediations.LastDone(r).Name == "reboot" && r.Intent.BootID == n.Status.NodeInfo.BootID
}

// calmOutlets checks the calm world: nothing hinders Drydock any more, so no machine that it meant
// to reboot may stay off.
func (w *world) calmOutlets() {
	for _, m := range w.machines {
		if w.staysOff(m) {
			w.fail("8: %s was switched off to be rebooted, and stays off", m.name)
		}
	}
}
