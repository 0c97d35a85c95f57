package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// life does everything to the engine that can happen in its world. Machines become sick, people
// write annotations, Alertmanagers die, a provider fails, writes are lost, a cache is behind, and
// processes die or sleep.
type life struct {
	w *world
	// restless is until when something is broken on purpose, so that deadlines may pass.
	restless time.Time
	// files are the Nodes in a backup, which may be applied later.
	files snapshot
	// past are the states of the store, oldest first.
	past []snapshot
}

// check inspects the world after every step. A new leader follows a dead one.
func (l *life) check(t *rapid.T) {
	if v := l.w.violated(); v != "" {
		t.Fatal(v)
	}
	if last := l.w.last(); at(l.w, func() bool { return last.dead }) {
		l.w.pass(15 * time.Second)
		l.w.startWith(last.config, last.offset)
	}
	l.past = append(l.past, at(l.w, l.w.snapshot))
}

// follow ends the leader in good order; another one follows.
func (l *life) follow(c *remediations.Config, offset time.Duration) {
	l.w.do(l.w.last().cancel)
	l.w.pass(6 * time.Second)
	l.w.startWith(c, offset)
}

// last returns the engine that leads, or the next one to lead.
func (w *world) last() *instance {
	return at(w, func() *instance { return w.instances[len(w.instances)-1] })
}

// calm makes the world healthy again, and gives the engine the time to notice. After that nothing
// may be left over.
func (l *life) calm(t *rapid.T) {
	w := l.w
	w.do(func() {
		w.repairEverything()
		w.lag = 0
		clear(w.faults)
		clear(w.always)
		for _, i := range w.instances {
			i.crashAt = 0
		}
		w.tend()
	})
	l.check(t)
	if last := w.last(); last.offset != 0 || last.config != w.config {
		l.follow(w.config, 0)
	}
	w.pass(25 * time.Minute)
	w.do(func() { w.overdue(time.Minute) })
	l.check(t)
	l.calmSidecars()
	w.do(func() {
		w.calmMesh()
		w.calmOutlets()
		for _, s := range mustLedger(w).Slots {
			w.fail("a slot is left over: %v", s)
		}
		for _, o := range mustLedger(w).Orphans {
			if w.nodes[o.Node] == nil {
				w.fail("an orphan is left over: %v", o)
			}
		}
		for n := range w.nodes {
			r := w.record(n)
			if w.nodes[n].Spec.Unschedulable && w.machines[n].cordonedBy == "drydock" && r == nil && !w.machines[n].stripped {
				w.fail("8: the cordon of %s is left over", n)
			}
			if m := w.machines[n]; w.outOfService(n) && m.markedBoot != "" && m.well() && !m.stripped {
				w.fail("8: the mark of %s is left over", n)
			}
			waits := r != nil && r.Cause.Request != "" && r.Intent == nil                          // for an approval, an uncordon, another day
			waits = waits || (r != nil && isPlanted(r.ID) && r.Phase == remediations.PhasePending) // a day at most, and delays no other repair
			if r != nil && r.Phase != remediations.PhaseExhausted && !waits {
				w.fail("%s has a repair left over: %s", n, r.Encode())
			}
		}
	})
	l.check(t)
}

func mustLedger(w *world) *ledger.Ledger {
	if w.ledger == nil {
		return &ledger.Ledger{} // deleted, and not needed since
	}
	l, err := ledger.Decode(w.ledger)
	if err != nil {
		w.fail("the ledger cannot be read: %v", err)
		return &ledger.Ledger{}
	}
	return l
}

// TestWhateverHappens is the property test of all invariants over the whole engine. The world
// checks them at every write and every call. rapid prints the seed of a failure; -rapid.seed
// replays it.
func TestWhateverHappens(t *testing.T) {
	t.Parallel()
	calls, seen := 0, map[string]int{}
	count := func(w *world) {
		for _, i := range w.instances {
			seen["samples"] += i.asked["leases"]
		}
		if w.gates != nil {
			seen["approvals"] += len(w.gates.approvals)
			for _, e := range w.gates.ended {
				seen["sidecars "+string(e.Outcome)]++
			}
		}
		if w.mesh != nil {
			seen["moves"] += len(w.mesh.moved)
			seen["moves put back"] += len(w.mesh.backs)
			for _, e := range w.mesh.ended {
				seen["leaders "+string(e.Outcome)]++
			}
		}
		seen["evictions"] += len(w.evictions)
		for _, c := range w.calls {
			seen["calls to "+c.step]++
		}
		for _, e := range w.ended {
			if slices.Contains(e.Steps.Texts(), "replace:1") {
				seen["replaced, "+string(e.Outcome)]++
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		c := anyConfig(rt)
		sidecars := rapid.Bool().Draw(rt, "sidecars")
		if sidecars {
			anySidecars(rt, c)
		}
		mesh := rapid.Bool().Draw(rt, "mesh")
		if mesh {
			anyLeaders(rt, c)
		}
		gpus := rapid.IntRange(0, 2).Draw(rt, "GPUs") == 0
		if gpus {
			countsGPUs(c)
		}
		sampled, outlets := rapid.Bool().Draw(rt, "sampled leases"), rapid.IntRange(0, 3).Draw(rt, "outlets") == 0
		ways := layout{zones: rapid.IntRange(1, 3).Draw(rt, "zones"), pools: rapid.IntRange(1, 2).Draw(rt, "pools"), controlPlane: rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(rt, "control plane")}
		inBubble(t, func(*testing.T) {
			l := &life{w: newWorldOf(c, len(nodeNames), ways)}
			defer l.w.close()
			l.w.do(func() {
				l.w.monitor()
				l.w.outlets = outlets
				if gpus {
					l.w.haveGPUs()
				}
			})
			if sampled {
				l.w.core.sampling = modelSampling
			}
			if sidecars {
				for i := range 4 {
					l.w.host(podName(i), nodeNames[i/2])
				}
			}
			if mesh {
				l.w.do(l.w.spread)
			}
			l.w.start()
			rt.Repeat(l.actions())
			l.calm(rt)
			l.live(rt)
			calls += l.w.callCount()
			l.w.do(func() { count(l.w) })
			for _, o := range l.w.outcomes() {
				seen[string(o)]++
			}
			for _, e := range at(l.w, func() []Event { return l.w.told }) {
				if e.Reason == "RepairHeld" {
					seen[e.Action]++
				}
			}
		})
	})
	t.Logf("%d calls; ends and holds: %v", calls, seen)
	require.NotZero(t, calls, "a model in which nothing happens shows nothing")
}
