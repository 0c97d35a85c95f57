package engine

import (
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
)

const (
	// confirmEvery is how often a node's monitor confirms its condition. staleAfter is how long a
	// policy believes it.
	confirmEvery = 5 * time.Minute
	staleAfter   = 10 * time.Minute
	// fullGPUs is how many GPUs a machine has in a world with GPUs.
	fullGPUs = 8
)

// doubts makes the policies believe a condition only as long as the node's monitor confirms it.
func doubts(c *remediations.Config) {
	for _, p := range c.Policies {
		if p.Witness == nil {
			continue
		}
		for i := range p.Witness.Signs {
			if p.Witness.Signs[i].Kind == signs.Condition {
				p.Witness.Signs[i].StaleAfter = staleAfter
			}
		}
	}
}

// countsGPUs makes the policies check the number of GPUs, too.
func countsGPUs(c *remediations.Config) {
	w := *c.Policies[0].Witness
	w.Signs = append(w.Signs[:len(w.Signs):len(w.Signs)], signs.Sign{Kind: signs.MissingGPUs})
	c.Policies[0].Witness = &w
}

// monitor makes the monitors confirm, from now on, the conditions of the nodes with a fault.
func (w *world) monitor() {
	w.in(confirmEvery, func() {
		for _, name := range slices.Sorted(maps.Keys(w.machines)) {
			if m := w.machines[name]; m.up && m.unmonitored.IsZero() && (m.faulty() || w.record(name) != nil) {
				w.edit(name, func(n *corev1.Node) { setBroken(n, m) })
			}
		}
		w.monitor()
	})
}

// setBroken writes the monitor's last confirmation on the Node: now, or when the monitor was lost.
func setBroken(n *corev1.Node, m *machine) {
	c := conditionOf(n, conditionBroken)
	if c == nil {
		return
	}
	if c.LastHeartbeatTime = metav1.Now(); !m.unmonitored.IsZero() {
		c.LastHeartbeatTime = metav1.NewTime(m.unmonitored)
	}
}

// checkConfirmed fails a call that only a condition justifies which its monitor has not confirmed
// for too long.
func (w *world) checkConfirmed(n *corev1.Node, m *machine, p *remediations.Policy) {
	c := conditionOf(n, conditionBroken)
	if !m.well() || m.mute || c == nil || p == nil || p.Witness == nil || m.gpus < w.gpusKnown(n) {
		return
	}
	for _, s := range p.Witness.Signs {
		if s.Kind == signs.Condition && s.StaleAfter > 0 && time.Since(c.LastHeartbeatTime.Time) > s.StaleAfter+lookedFor {
			w.fail("5: a call for %s, and nobody has confirmed since %s that it is broken", n.Name, c.LastHeartbeatTime)
		}
	}
}

// loseMonitor removes the node's monitor, so that the condition stays as it is. If the monitor is
// already gone, it brings the monitor back.
func (w *world) loseMonitor(name string) {
	if m := w.machines[name]; m != nil {
		m.unmonitored = toggled(m.unmonitored)
		w.edit(name, func(n *corev1.Node) { setBroken(n, m) })
	}
}

// relatch brings the condition back some time after each boot, unless the machine booted again or
// has another fault.
func (w *world) relatch(m *machine) {
	booting := m.booting
	w.in(m.relatches, func() {
		if w.machines[m.name] == m && m.booting == booting && m.relatches > 0 && m.up {
			w.breakDown(m.name, 1)
		}
	})
}

// showGPUs writes on the Node how many GPUs the machine finds. A GPU that is off its bus is in
// neither number.
func (w *world) showGPUs(n *corev1.Node, m *machine) {
	if w.gpus {
		n.Labels[signs.GPUCountLabel] = strconv.Itoa(m.gpus)
		n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(m.gpus), resource.DecimalSI)}
	}
}

// haveGPUs gives GPUs to all machines, and to those that join later.
func (w *world) haveGPUs() {
	w.gpus = true
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		w.report(w.machines[name])
	}
}

// loseGPU takes a GPU off its bus, together with whatever else that breaks. back means that the
// next boot finds all GPUs again.
func (w *world) loseGPU(name string, back bool) {
	if m := w.machines[name]; m != nil && w.gpus && m.gpus > 1 {
		m.gpus, m.gpusBack = m.gpus-1, back
		w.breakDown(name, 1)
		w.report(m)
	}
}

// gpusKnown is how many GPUs the Node's machine had according to the ledger.
func (w *world) gpusKnown(n *corev1.Node) int {
	if l := w.book(); l != nil {
		return l.GPUs[ledger.GPUMachine(n)]
	}
	return 0
}

// checkGPUs checks invariant 7 of a machine that has lost GPUs: since before the first step of the
// repair, or since the ledger noted more.
func (w *world) checkGPUs(cur *corev1.Node, e remediations.Entry) {
	had := max(w.gpusAt[e.ID], w.gpusKnown(cur))
	if now, _ := strconv.Atoi(cur.Labels[signs.GPUCountLabel]); now < had && w.of[e.ID] == cur.Spec.ProviderID {
		w.fail("7: %s of %s, which has %d of the %d GPUs that it had", e.Outcome, cur.Name, now, had)
	}
}

// checkGPUsKept: the ledger may forget a machine's GPUs only when a person resets its node.
func (w *world) checkGPUsKept(data map[string]string) {
	was, next := w.book(), &ledger.Ledger{}
	if was == nil {
		return
	}
	if l, err := ledger.Decode(data); err == nil {
		next = l
	}
	for _, n := range w.nodes {
		machine := ledger.GPUMachine(n)
		if _, resets := n.Annotations[remediations.ResetKey]; !resets && next.GPUs[machine] < was.GPUs[machine] {
			w.fail("GPUs: the ledger says that %s had %d GPUs, and it said %d", machine, next.GPUs[machine], was.GPUs[machine])
		}
	}
}

// signActions are the actions that make the signs of a fault wrong.
func (l *life) signActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"another tool dates its mark, or takes it away": l.do(func(t *rapid.T, w *world) { w.marksNode(t) }),
		"a condition comes back with each boot, or does not": l.do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.relatches = rapid.SampledFrom([]time.Duration{0, 20 * time.Second, 90 * time.Second, 10 * time.Minute}).Draw(t, "after")
			}
		}),
		"a monitor goes or comes": l.do(func(t *rapid.T, w *world) { w.loseMonitor(pick(t)) }),
		"a machine breaks, and its monitor is gone": func(t *rapid.T) {
			l.w.do(func() {
				name := pick(t)
				w := l.w
				w.breakDown(name, 1)
				if m := w.machines[name]; m != nil && m.unmonitored.IsZero() {
					w.loseMonitor(name)
				}
			})
			l.w.pass(rapid.SampledFrom([]time.Duration{time.Second, 11 * time.Minute}).Draw(t, "for"))
		},
		"a GPU falls off its bus": l.do(func(t *rapid.T, w *world) { w.loseGPU(pick(t), rapid.Bool().Draw(t, "until the next boot")) }),
	}
}

// mendSigns makes the signs correct again. A mark whose time has passed stays: its owner has
// forgotten it.
func (w *world) mendSigns() {
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		m := w.machines[name]
		m.relatches, m.unmonitored = 0, time.Time{}
		m.gpus, m.gpusBack = fullGPUs, false
		if n := w.nodes[name]; n != nil && !dateOfMark(n).IsZero() && !overdueMark(n) {
			w.edit(name, unmark)
		}
		w.report(m)
	}
}
