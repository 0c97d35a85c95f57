package engine

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
)

// knockOut is one clause of an invariant, and how to remove it. In its scenario, only that clause
// prevents a violation. With the clause nothing is violated. Without it, the check of that
// invariant must fail. The check is the same as in TestWhateverHappens.
type knockOut struct {
	config func(*remediations.Config)
	nodes  int // 0 means six
	layout layout
	take   func(*hands)
	tale   func(*testing.T, *world)
	// speaks is the beginning of the check's message.
	speaks string
}

// knockOuts are all tables of knock-outs. Each file has the table for some invariants.
func knockOuts() map[string]knockOut {
	all := map[string]knockOut{}
	for _, some := range []map[string]knockOut{actKnockOuts(), limitKnockOuts(), wordKnockOuts(), dataKnockOuts(), proofKnockOuts(), traceKnockOuts(), guardKnockOuts(), peopleKnockOuts(), drainKnockOuts(), replaceKnockOuts(), sidecarKnockOuts(), leaderKnockOuts(), witnessKnockOuts(), livenessKnockOuts(), storeKnockOuts(), machineKnockOuts(), outageKnockOuts(), signKnockOuts(), powerKnockOuts()} {
		maps.Copy(all, some)
	}
	return all
}

// hands remove things from the engine.
type hands struct {
	t *testing.T
	w *world
}

// state gives Decide a changed state.
func (h *hands) state(change func(*lifecycle.State, time.Time)) {
	h.w.core.decide = func(s *lifecycle.State, now time.Time) lifecycle.Decision {
		c := *s
		change(&c, now)
		return node.Decide(&c, now)
	}
}

// decision makes the engine apply another decision than Decide's.
func (h *hands) decision(change func(*lifecycle.State, *lifecycle.Decision)) {
	h.w.core.decide = func(s *lifecycle.State, now time.Time) lifecycle.Decision {
		d := node.Decide(s, now)
		change(s, &d)
		return d
	}
}

// config gives Decide another configuration. Its first policy is a copy, too.
func (h *hands) config(change func(*remediations.Config, *remediations.Policy)) {
	h.state(func(s *lifecycle.State, _ time.Time) {
		c := *s.Config
		c.Policies = slices.Clone(c.Policies)
		p := *c.Policies[0]
		c.Policies[0] = &p
		change(&c, &p)
		s.Config = &c
	})
}

// node gives Decide another Node.
func (h *hands) node(change func(*corev1.Node)) {
	h.state(func(s *lifecycle.State, _ time.Time) {
		s.Node = s.Node.DeepCopy()
		change(s.Node)
	})
}

// word gives Decide another answer of each Alertmanager.
func (h *hands) word(change func(i int, s *lifecycle.State, r *alerts.Replica)) {
	h.state(func(s *lifecycle.State, _ time.Time) { hear(s, change) })
}

func hear(s *lifecycle.State, change func(i int, s *lifecycle.State, r *alerts.Replica)) {
	if s.Snapshot == nil {
		return
	}
	w := *s.Snapshot
	w.Replicas = slices.Clone(w.Replicas)
	for i := range w.Replicas {
		w.Replicas[i].Alerts = maps.Clone(w.Replicas[i].Alerts)
		change(i, s, &w.Replicas[i])
	}
	s.Snapshot = &w
}

// everyAlert changes each alert in an Alertmanager's answer.
func everyAlert(change func(*alerts.Alert)) func(int, *lifecycle.State, *alerts.Replica) {
	return func(_ int, _ *lifecycle.State, r *alerts.Replica) {
		for fp, a := range r.Alerts {
			change(&a)
			r.Alerts[fp] = a
		}
	}
}

// sickNode is the simplest scenario: n0 fails, its alert is posted, and one reboot would cure it.
func sickNode(_ *testing.T, w *world) {
	w.start()
	w.pass(16 * time.Second)
	w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
	w.pass(5 * time.Minute)
}

// after is that scenario with something before it.
func after(first func(w *world)) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		w.do(func() { first(w) })
		sickNode(t, w)
	}
}

// restart ends the leader in good order; another one follows it.
func (w *world) restart(c *remediations.Config) {
	w.do(w.last().cancel)
	w.pass(6 * time.Second)
	w.startWith(c, 0)
}

func (k knockOut) run(t *testing.T, take func(*hands)) string {
	t.Helper()
	c := modelConfig()
	if k.config != nil {
		k.config(c)
	}
	nodes, ways := max(k.nodes, 6), k.layout
	if ways == (layout{}) {
		ways = layout{nodes, 1, 0}
	}
	var said string
	inBubble(t, func(t *testing.T) {
		w := newWorldOf(c, nodes, ways)
		defer w.close()
		take(&hands{t, w})
		k.tale(t, w)
		said = w.violated()
	})
	return said
}

// TestEachClauseIsNeeded removes each clause of the invariants, one by one. The check of that
// invariant must then fail, and must not fail if nothing is removed.
func TestEachClauseIsNeeded(t *testing.T) {
	clock := regexp.MustCompile(`^[0-9:]+ `)
	all := knockOuts()
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i%every() != 0 {
			continue
		}
		k := all[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, k.run(t, func(*hands) {}), "the control")
			said := clock.ReplaceAllString(k.run(t, k.take), "")
			require.True(t, strings.HasPrefix(said, k.speaks), "without the clause the check must say %q, it says %q", k.speaks, said)
		})
	}
}

// TestEachInvariantHasItsKnockOuts: each invariant in DESIGN has knock-outs, by its number.
func TestEachInvariantHasItsKnockOuts(t *testing.T) {
	seen := map[string]int{}
	for _, k := range knockOuts() {
		number, _, _ := strings.Cut(k.speaks, ":")
		seen[number]++
	}
	for _, number := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"} {
		require.NotZero(t, seen[number], "invariant %s", number)
	}
}
