package engine

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// callsOf are the steps of the provider's calls, in order.
func (w *world) callsOf() []string {
	return at(w, func() (out []string) {
		for _, c := range w.calls {
			out = append(out, c.step)
		}
		return out
	})
}

func (w *world) evicted() int { return at(w, func() int { return len(w.evictions) }) }

func (w *world) orphans(t testing.TB) []ledger.Orphan {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	l, err := ledger.Decode(w.ledger)
	require.NoError(t, err)
	return l.Orphans
}

// toldOf are the Events of that reason.
func (w *world) toldOf(reason string) []Event {
	return at(w, func() []Event {
		return slices.DeleteFunc(slices.Clone(w.told), func(e Event) bool { return e.Reason != reason })
	})
}

// during is the scenario of a node that a reboot does not help. It runs until the given step is
// under way.
func (w *world) during(t *testing.T, step string) {
	t.Helper()
	w.start()
	w.pass(16 * time.Second)
	w.do(func() { w.ail("n0", 9); w.post("n0", remediations.StatusFiring) })
	require.True(t, w.until(20*time.Minute, func() bool {
		r := w.record("n0")
		return r != nil && r.Phase.InFlight() && r.Step.Name == step
	}), "it never came to the %s", step)
}

// TestMachineThatNoRebootCuresIsReplaced: the node is emptied first. The repair ends in the history
// of the new machine's Node, under whichever name that Node registers.
func TestMachineThatNoRebootCuresIsReplaced(t *testing.T) {
	for name, successor := range map[string]string{"a new name": "n60", "the old name": "n0"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
				w.do(func() { w.recycling.oldName = successor == "n0" })
				w.during(t, "replace")
				require.Equal(t, 2, w.evicted(), "emptied first")
				require.True(t, w.nodeOf("n0").Spec.Unschedulable)
				require.Len(t, w.orphans(t), 1)
				require.True(t, w.until(time.Minute, func() bool { return w.nodes["n0"] == nil }))
				w.pass(20 * time.Second)
				require.Len(t, w.slots(t), 1, "the repair outlives its Node, and so does its slot")
				w.pass(10 * time.Minute)

				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
				require.Equal(t, []string{"reboot", "replace"}, w.callsOf())
				e := remediations.DecodeHistory(w.nodeOf(successor).Annotations[remediations.HistoryKey])[0]
				require.Equal(t, remediations.OutcomeRecovered, e.Outcome)
				require.Equal(t, []string{"reboot:1", "drain:1", "replace:1"}, e.Steps.Texts())
				require.Empty(t, w.slots(t))
				require.Empty(t, w.orphans(t))
				require.False(t, w.nodeOf(successor).Spec.Unschedulable)
				repairs := at(w, func() map[string][]ledger.Begun { return w.book().Repairs })
				require.Len(t, repairs["civo://m0"], 1, "three steps are one repair")
				require.NotContains(t, repairs, "civo://m101", "the new machine starts with nothing")
				require.Len(t, w.toldOf("RepairRecovered"), 1)
			})
		})
	}
}

// TestNodeRegisteredAgainDoesNotCountAsReplacement: the machine is the same, although its Node is
// another one.
func TestNodeRegisteredAgainDoesNotCountAsReplacement(t *testing.T) {
	inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
		w.do(func() { w.mood.idle = true })
		w.during(t, "replace")
		w.pass(time.Minute)
		w.do(func() { w.register("n0"); w.heal("n0") })
		w.pass(10 * time.Minute)
		require.Empty(t, w.toldOf("RepairRecovered"))
		require.Len(t, w.slots(t), 1)
		w.pass(10 * time.Minute)
		require.Empty(t, w.outcomes(), "no Node is the successor")
		require.Len(t, w.toldOf("RepairExhausted"), 1)
		require.Contains(t, w.toldOf("RepairExhausted")[0].Note, "the old instance is still there")
		require.Empty(t, w.slots(t))
		require.Empty(t, w.orphans(t))
		require.Equal(t, []string{"reboot", "replace"}, w.callsOf())
	})
}

// TestNodeOfAMachineThatIsBeingReplacedIsLeftAlone: although it is sick, the Node that registered
// again waits for the end of the replacement.
func TestNodeOfAMachineThatIsBeingReplacedIsLeftAlone(t *testing.T) {
	inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
		w.do(func() { w.mood.idle = true })
		w.during(t, "replace")
		w.pass(time.Minute)
		w.do(func() { w.register("n0"); w.post("n0", remediations.StatusFiring) })
		w.pass(5 * time.Minute)
		require.Equal(t, remediations.ReasonNodeUnderRepair, w.recordOf("n0").Hold.Reason)
		require.Equal(t, 2, w.callCount())
	})
}

// TestTwoReplacementsEndWhileTheLedgerCannotBeSaved: both are recorded once the ledger can be
// saved, each of them once.
func TestTwoReplacementsEndWhileTheLedgerCannotBeSaved(t *testing.T) {
	conf := wholeConfig()
	conf.Limits.Concurrent.Value = 2
	inWorld(t, conf, 8, func(t *testing.T, w *world) {
		w.do(func() { w.recycling.joins = 0 })
		w.start()
		w.pass(16 * time.Second)
		w.do(func() {
			for _, n := range []string{"n0", "n1"} {
				w.ail(n, 9)
				w.post(n, remediations.StatusFiring)
			}
		})
		require.True(t, w.until(30*time.Minute, func() bool { return w.nodes["n0"] == nil && w.nodes["n1"] == nil }))
		require.Len(t, w.orphans(t), 2)
		w.do(func() { w.always["save"] = "lost" })
		w.pass(30 * time.Minute)
		require.Empty(t, w.toldOf("RepairExhausted"))
		w.do(func() { clear(w.always) })
		w.pass(2 * time.Minute)
		require.Len(t, w.toldOf("RepairExhausted"), 2)
		require.Empty(t, w.slots(t))
	})
}

// TestReplacementThatNeverComes: the repair ends at its deadline. If the Node stays, the end is on
// that Node, which a person must check; otherwise it is in an Event.
func TestReplacementThatNeverComes(t *testing.T) {
	for name, stays := range map[string]bool{"its Node stays": true, "its Node goes": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
				w.do(func() {
					w.recycling.joins = 0
					if stays {
						w.recycling.nodeGoes = 0
					}
				})
				w.during(t, "replace")
				w.pass(14 * time.Minute)
				require.Len(t, w.slots(t), 1)
				w.pass(2 * time.Minute)
				require.Empty(t, w.slots(t))
				require.Empty(t, w.orphans(t))
				require.Len(t, w.toldOf("RepairExhausted"), 1)
				require.Contains(t, w.toldOf("RepairExhausted")[0].Note, "there is no new instance")
				if stays {
					require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
					require.True(t, w.nodeOf("n0").Spec.Unschedulable)
				}
				require.Equal(t, 1, at(w, func() int { return w.book().Status.Exhausted["node-not-ready"] }))
			})
		})
	}
}

// TestOutOfServiceOnlyWhereTheMachineIsGone: pods and volumes are released when nothing writes to
// them any more, and a person's reset removes the taint.
func TestOutOfServiceOnlyWhereTheMachineIsGone(t *testing.T) {
	for name, idle := range map[string]bool{"the provider does nothing": true, "the machine goes": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
				w.do(func() { w.mood.idle, w.recycling.nodeGoes, w.recycling.joins = idle, 0, 0 })
				w.during(t, "replace")
				marked := func() bool {
					return slices.ContainsFunc(w.nodes["n0"].Spec.Taints, func(t corev1.Taint) bool { return t.Key == remediations.OutOfServiceTaint })
				}
				require.Equal(t, !idle, w.until(5*time.Minute, marked))
				w.pass(20 * time.Minute)
				require.Equal(t, !idle, at(w, marked), "it stays as long as nobody has looked")
				w.do(func() { w.edit("n0", edit(remediations.ResetKey, "true")) })
				w.pass(time.Minute)
				require.False(t, at(w, marked))
			})
		})
	}
}

// TestReplacementSurvivesItsLeader: the next leader reads in the ledger what the replacement waits
// for.
func TestReplacementSurvivesItsLeader(t *testing.T) {
	inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
		w.during(t, "replace")
		require.True(t, w.until(time.Minute, func() bool { return w.nodes["n0"] == nil }))
		for range 3 {
			last := w.last()
			w.do(func() { last.dead = true })
			w.pass(15 * time.Second)
			w.start()
		}
		w.pass(10 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		require.Empty(t, w.orphans(t))
	})
}

// TestControlPlaneIsNeverReplaced: nor is it drained for a replacement that never comes.
func TestControlPlaneIsNeverReplaced(t *testing.T) {
	conf := wholeConfig()
	inBubble(t, func(t *testing.T) {
		w := newWorldOf(conf, 6, layout{6, 1, 5})
		defer w.close()
		w.start()
		w.do(func() { w.ail("n0", 9) })
		w.pass(time.Hour)
		require.Equal(t, []string{"reboot"}, w.callsOf())
		require.Zero(t, w.evicted())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.outcomes())
		require.Empty(t, w.violated())
	})
}

// TestARequestedReplacementDrainsFirst: a person who requests only the replacement loses no pod
// that a drain would have moved. The machine is replaced when the node is empty. A drain that does
// not end stops the replacement.
func TestARequestedReplacementDrainsFirst(t *testing.T) {
	c := wholeConfig()
	c.Mode, c.Policies[0].Plan = remediations.ModeEnforce, c.Policies[0].Plan[:1]
	ask := func(w *world, pods int) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() {
			w.machines["n0"].pods.left = pods
			w.edit("n0", edit(remediations.RequestKey, "remediation/replace"))
		})
	}
	inWorld(t, c, 5, func(t *testing.T, w *world) {
		ask(w, 40)
		require.True(t, w.until(time.Hour, func() bool { return len(w.calls) > 0 }))
		require.Equal(t, 40, w.evicted(), "replaced before it was empty")
		w.pass(20 * time.Minute)
		require.Equal(t, []string{"replace"}, w.callsOf())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
	})
	inWorld(t, c, 5, func(t *testing.T, w *world) {
		ask(w, 100_000)
		require.True(t, w.until(time.Hour, func() bool { r := w.record("n0"); return r != nil && r.Phase == remediations.PhaseExhausted }))
		require.Zero(t, w.callCount(), "the drain did not end, and the machine stays")
	})
}

// TestSilenceOfAReplacementEndsWithIt: the silence ends even if the Node was gone before the call
// was answered, and under a new leader.
func TestSilenceOfAReplacementEndsWithIt(t *testing.T) {
	for name, c := range map[string]struct {
		answers time.Duration
		restart bool
	}{
		"answered at once": {}, "answered after its Node is gone": {answers: 40 * time.Second}, "another leads by then": {restart: true},
	} {
		t.Run(name, func(t *testing.T) {
			conf := planned("replace")
			conf.Policies[0].Plan[0].Wait = 15 * time.Minute
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				quiet := &silencer{}
				w.silencer = quiet
				w.do(func() { w.mood.after = c.answers })
				w.during(t, "replace")
				require.True(t, w.until(2*time.Minute, func() bool { return w.nodes["n0"] == nil }))
				w.pass(20 * time.Second)
				if c.restart {
					w.restart(w.config)
				}
				w.pass(10 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
				require.Len(t, quiet.made, 1)
				require.Equal(t, []string{"s1"}, quiet.expired)
			})
		})
	}
}

// remembers is a provider of replacements that remembers its calls.
type remembers struct {
	replacer
	machines *[]Machine
}

func (r remembers) Act(ctx context.Context, m Machine, mayStill func() error) (remediations.CallOutcome, error) {
	*r.machines = append(*r.machines, m)
	return r.replacer.Act(ctx, m, mayStill)
}

// TestTheProviderGetsWhetherPodsAreGivenUp: the provider must not wait for pods if the policy
// continues after an incomplete drain, and only then.
func TestTheProviderGetsWhetherPodsAreGivenUp(t *testing.T) {
	for _, goesOn := range []bool{true, false} {
		c := wholeConfig()
		c.Policies[0].Plan[1].ContinueOnTimeout = goesOn
		inWorld(t, c, 6, func(t *testing.T, w *world) {
			var machines []Machine
			i := w.start()
			w.pass(16 * time.Second)
			i.engine.Actuators[""]["replace"] = remembers{replacer{provider{i, "replace"}}, &machines}
			w.do(func() { w.ail("n0", 9); w.post("n0", remediations.StatusFiring) })
			require.True(t, w.until(40*time.Minute, func() bool { return len(machines) == 1 }))
			require.Equal(t, goesOn, machines[0].GivesUpPods)
		})
	}
}
