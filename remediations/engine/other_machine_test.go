package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
)

// endOf returns the repair's outcome in the Node's history. It is empty if the history does not
// have the repair.
func (w *world) endOf(name, repair string) (o remediations.Outcome) {
	n := w.nodeOf(name)
	if n == nil {
		return ""
	}
	for _, e := range remediations.DecodeHistory(n.Annotations[remediations.HistoryKey]) {
		if e.ID == repair {
			o = e.Outcome
		}
	}
	return o
}

// TestRecordOfAnotherMachineIsSuperseded: a Node is created again with everything that the old Node
// had, and its machine fails once. On another machine the repair begins with the first step. The
// same machine continues its plan, which is the control.
func TestRecordOfAnotherMachineIsSuperseded(t *testing.T) {
	drained := func(w *world) bool { return w.waitsForReplacement("n0") }
	verifying := func(w *world) bool { r := w.record("n0"); return r != nil && r.Phase == remediations.PhaseVerifying }
	exhausted := func(w *world) bool { r := w.record("n0"); return r != nil && r.Phase == remediations.PhaseExhausted }
	for name, c := range map[string]struct {
		config *remediations.Config
		when   func(*world) bool
		heals  bool
		next   []string
		same   []string
		ends   remediations.Outcome
	}{
		"Pending before the replacement": {wholeConfig(), drained, false, []string{"reboot"}, []string{"replace"}, remediations.OutcomeSuperseded},
		"Verifying a reboot":             {modelConfig(), verifying, true, nil, []string{"reboot"}, remediations.OutcomeSuperseded},
		"Exhausted":                      {modelConfig(), exhausted, false, []string{"reboot"}, nil, remediations.OutcomeExhausted},
	} {
		for _, providerID := range []string{"civo://another", "civo://m0"} {
			t.Run(name+", "+providerID, func(t *testing.T) {
				inWorld(t, c.config, 6, func(t *testing.T, w *world) {
					same := providerID == "civo://m0"
					w.start()
					w.pass(16 * time.Second)
					w.do(func() { w.ail("n0", 99) })
					require.True(t, w.until(4*time.Hour, func() bool { return c.when(w) }))
					old := w.recordOf("n0").ID
					before := w.callCount()
					w.do(func() {
						w.mood.trouble = ""
						w.remake("n0", providerID)
						w.edit("n0", func(n *corev1.Node) { n.Spec.Unschedulable = same && n.Spec.Unschedulable })
						if same {
							return
						}
						w.edit("n0", func(n *corev1.Node) { n.Spec.Taints = nil })
						if !c.heals {
							w.ail("n0", 1)
						}
					})
					w.pass(11 * time.Minute)
					calls := slices.Clone(w.callsOf()[before:])
					if same {
						require.Equal(t, c.same, append([]string(nil), calls...))
						require.NotEqual(t, remediations.OutcomeSuperseded, w.endOf("n0", old))
						return
					}
					require.Equal(t, c.next, append([]string(nil), calls...))
					require.Equal(t, c.ends, w.endOf("n0", old))
					require.Len(t, w.toldOf("RepairSuperseded"), 1)
					for _, e := range at(w, func() []remediations.Outcome {
						var out []remediations.Outcome
						for _, e := range w.ended {
							if e.ID == old && e.Outcome != remediations.OutcomeExhausted {
								out = append(out, e.Outcome)
							}
						}
						return out
					}) {
						require.Equal(t, remediations.OutcomeSuperseded, e)
					}
					if !c.heals {
						for _, call := range at(w, func() []providerCall { return w.calls[before:] }) {
							require.False(t, strings.HasPrefix(call.intent, old))
						}
					}
				})
			})
		}
	}
}

// TestAnOldRecordThatIsPutBackIsRemoved: the repair has ended, and nothing continues from its old
// record.
func TestAnOldRecordThatIsPutBackIsRemoved(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.hold("n0", edit(remediations.PauseKey, "true")); w.ail("n0", 1) })
		require.True(t, w.until(2*time.Minute, func() bool { return w.record("n0") != nil }))
		old, text := w.recordOf("n0"), w.nodeOf("n0").Annotations[remediations.NodeRepairKey]
		w.do(func() { w.unhold("n0") })
		w.pass(10 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes(), "the control: the repair goes on from the same record")
		w.do(func() { w.edit("n0", edit(remediations.NodeRepairKey, text)) })
		w.pass(time.Minute)
		require.NotContains(t, w.nodeOf("n0").Annotations, remediations.NodeRepairKey)
		require.Len(t, w.toldOf("RepairSuperseded"), 1)
		require.Equal(t, remediations.OutcomeRecovered, w.endOf("n0", old.ID), "the history keeps how it ended")
		require.Equal(t, 1, w.callCount())
	})
}

// TestAnOldRecordOfASidecarOrAMoveThatIsPutBackIsRemoved: a backup puts the record of an ended
// repair on its Node, of the same machine or of another one. Nothing continues from the record.
func TestAnOldRecordOfASidecarOrAMoveThatIsPutBackIsRemoved(t *testing.T) {
	for _, another := range []bool{false, true} {
		t.Run(fmt.Sprintf("sidecar, another machine %v", another), func(t *testing.T) {
			inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.gates.mood.after = 20 * time.Second; w.replacePod(podName(0), "n0"); w.postPod(podName(0)) })
				require.True(t, w.until(time.Minute, func() bool { return len(w.gates.approvals) == 1 }))
				old := w.sidecarOf(podName(0)).Clone()
				w.do(func() { w.gates.mood = providerMood{} })
				require.True(t, w.until(time.Minute, func() bool { return len(w.gates.ended) == 1 }))
				w.do(func() {
					if another {
						w.remake("n0", "civo://another")
					}
					w.edit("n0", edit(podKey(podName(0)), old.Encode()))
				})
				w.pass(2 * time.Minute)
				require.Nil(t, w.sidecarOf(podName(0)))
				require.Len(t, w.toldOf("RepairSuperseded"), 1)
				require.Equal(t, remediations.OutcomeRecovered, w.endOf("n0", old.ID), "the history keeps how it ended")
				w.do(func() {
					for i, a := range w.gates.approvals {
						require.Equal(t, i == 0, repairOf(a.intent) == old.ID)
					}
					w.replacePod(podName(0), "n1")
				})
				before := w.approvalCount()
				require.True(t, w.until(time.Minute, w.allOpen))
				require.Equal(t, before+1, w.approvalCount(), "the control: the pod that comes in its place is approved")
			})
		})
		t.Run(fmt.Sprintf("move, another machine %v", another), func(t *testing.T) {
			inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.darken("n0", true) })
				require.True(t, w.until(5*time.Minute, func() bool { return len(w.mesh.moved) == 1 }))
				old := w.leaderRecordOn("n0").Clone()
				require.True(t, w.until(10*time.Minute, func() bool { return len(w.mesh.ended) == 1 }))
				w.do(func() { w.darken("n0", false) })
				w.pass(time.Minute)
				keys := w.keysOf("l0")
				w.do(func() {
					if another {
						w.remake("n0", "civo://another")
					}
					w.edit("n0", func(n *corev1.Node) {
						delete(n.Annotations, admission.MeshLeaderKey) // the move removed the key, and remake set it again
						n.Annotations[remediations.LocationKey] = old.Encode()
					})
				})
				w.pass(5 * time.Minute)
				require.Nil(t, w.leaderRecordOn("n0"))
				require.Len(t, w.toldOf("RepairSuperseded"), 1)
				require.Equal(t, remediations.OutcomeRecovered, w.endOf("n0", old.ID), "the history keeps how it ended")
				require.Equal(t, keys, w.keysOf("l0"))
				require.Len(t, w.moves(), 1)
				w.pass(15 * time.Minute) // a location is moved once in fifteen minutes
				w.do(func() { w.darken("n1", true) })
				w.pass(10 * time.Minute)
				require.Len(t, w.moves(), 2, "the control: the next failure is repaired")
			})
		})
	}
}

// TestCancelOnTheNewNodeKeepsTheReplacementOfTheOld: another machine has registered under the name
// of a node that is being replaced.
func TestCancelOnTheNewNodeKeepsTheReplacementOfTheOld(t *testing.T) {
	c := wholeConfig()
	c.Limits.Concurrent = remediations.Quantity{Value: 1}
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		w.do(func() { w.recycling = recycling{nodeGoes: 5 * time.Second} })
		w.during(t, "replace")
		require.True(t, w.until(time.Minute, func() bool { return w.nodes["n0"] == nil }))
		old := w.orphans(t)[0].Record.ID
		w.do(func() { w.join("n0", "civo://stranger"); w.ail("n0", 9); w.post("n0", remediations.StatusFiring) })
		require.True(t, w.until(2*time.Minute, func() bool { return w.record("n0") != nil }))
		w.do(func() {
			w.edit("n0", edit(remediations.CancelKey, w.record("n0").ID))
			w.ail("n1", 1)
			w.post("n1", remediations.StatusFiring)
		})
		w.pass(2 * time.Minute)
		require.Equal(t, remediations.OutcomeCancelled, w.outcomes()[len(w.outcomes())-1])
		require.Len(t, w.slots(t), 1)
		require.Equal(t, old, w.slots(t)[0].Repair)
		require.Len(t, w.orphans(t), 1)
		require.Equal(t, []string{"reboot", "replace"}, w.callsOf(), "limits.concurrent is 1")
		w.pass(30 * time.Minute)
		require.Equal(t, []string{"reboot", "replace", "reboot"}, w.callsOf(), "the control: the replacement's time is over")
	})
}

// TestResetOfAnotherTargetsRecordKeepsTheNodesOwn: the record of a location is unreadable while the
// node is being drained. A reset drops that record alone, and the node's repair continues to its
// end.
func TestResetOfAnotherTargetsRecordKeepsTheNodesOwn(t *testing.T) {
	inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
		w.do(func() { w.machines["n0"].pods = podsOf{left: 300} })
		w.during(t, "drain")
		own := w.recordOf("n0").ID
		w.do(func() { w.edit("n0", edit(remediations.LocationKey, "{}")) })
		w.pass(time.Minute)
		require.Equal(t, own, w.recordOf("n0").ID)
		require.Contains(t, w.recordOf("n0").Hold.Message, "cannot be read", "no further step begins meanwhile")
		evicted := w.evicted()
		w.pass(time.Minute)
		require.Equal(t, evicted, w.evicted())
		w.do(func() { w.edit("n0", edit(remediations.ResetKey, "true")) })
		w.pass(30 * time.Second)
		n := w.nodeOf("n0")
		require.NotContains(t, n.Annotations, remediations.LocationKey)
		require.NotContains(t, n.Annotations, remediations.ResetKey)
		require.Equal(t, own, w.recordOf("n0").ID)
		require.True(t, n.Spec.Unschedulable)
		w.pass(40 * time.Minute)
		require.Equal(t, []string{"reboot", "replace"}, w.callsOf())
		require.Empty(t, w.slots(t))
	})
}

// TestAnApprovalIsForThePlanThatWasShown: the plan is edited before the approved repair begins. The
// new plan needs another approval.
func TestAnApprovalIsForThePlanThatWasShown(t *testing.T) {
	for name, edited := range map[string]bool{"edited": true, "the same, the control": false} {
		t.Run(name, func(t *testing.T) {
			conf := modelConfig()
			conf.Policies[0].Approval = true
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.ail("n0", 1) })
				w.pass(5 * time.Minute)
				old := w.recordOf("n0")
				require.Equal(t, remediations.ReasonAwaitingApproval, old.Hold.Reason)
				w.do(func() {
					w.hold("n0", edit(remediations.PauseKey, "true"))
					w.edit("n0", edit(remediations.ApproveKey, old.ID))
				})
				w.pass(time.Minute)
				next := wholeConfig()
				if !edited {
					next = modelConfig()
				}
				next.Policies[0].Approval = true
				w.restart(next)
				w.do(func() { w.unhold("n0") })
				w.pass(5 * time.Minute)
				if !edited {
					require.Equal(t, 1, w.callCount())
					return
				}
				require.Zero(t, w.callCount())
				require.Zero(t, w.evicted())
				asks := w.recordOf("n0")
				require.NotEqual(t, old.ID, asks.ID)
				require.Equal(t, remediations.ReasonAwaitingApproval, asks.Hold.Reason)
				w.do(func() { w.edit("n0", edit(remediations.ApproveKey, asks.ID)) })
				w.pass(5 * time.Minute)
				require.Equal(t, 1, w.callCount(), "approved again")
			})
		})
	}
}

// TestAnApprovalOfALocationIsForThePlanThatWasShown: the plan about a location is edited before the
// approved repair begins. The new plan needs another approval.
func TestAnApprovalOfALocationIsForThePlanThatWasShown(t *testing.T) {
	for name, edited := range map[string]bool{"edited": true, "the same, the control": false} {
		t.Run(name, func(t *testing.T) {
			conf := func(edited bool) *remediations.Config {
				conf := leaderConfig()
				p := conf.Policies[1]
				if p.Approval = true; edited {
					p.Plan[0].Attempts++
				}
				return conf
			}
			inWorld(t, conf(false), 6, func(t *testing.T, w *world) {
				w.do(func() { w.spread() })
				record := func() *remediations.Record {
					return at(w, func() *remediations.Record { return w.leaderRecords()["n0"] })
				}
				calls := func() int { return at(w, func() int { return len(w.mesh.moved) }) }
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.darken("n0", true) })
				w.pass(5 * time.Minute)
				old := record()
				require.Equal(t, remediations.ReasonAwaitingApproval, old.Hold.Reason)
				w.do(func() {
					w.hold("n0", edit(remediations.PauseKey, "true"))
					w.edit("n0", edit(remediations.ApproveKey, old.ID))
				})
				w.pass(time.Minute)
				require.Zero(t, calls())
				w.restart(conf(edited))
				w.do(func() { w.unhold("n0") })
				w.pass(2 * time.Minute)
				if !edited {
					require.Equal(t, 1, calls())
					return
				}
				require.Zero(t, calls())
				asks := record()
				require.NotEqual(t, old.ID, asks.ID)
				require.Equal(t, remediations.ReasonAwaitingApproval, asks.Hold.Reason)
				w.do(func() { w.edit("n0", edit(remediations.ApproveKey, asks.ID)) })
				w.pass(2 * time.Minute)
				require.Equal(t, 1, calls(), "approved again")
			})
		})
	}
}

// TestAMachineThatRegistersAgainInMidRepairContinuesThePlan: a cloud controller deletes the Node of
// a machine that reboots, and the machine registers again. Its next repair makes the second
// attempt. Another machine under the name begins with the first.
func TestAMachineThatRegistersAgainInMidRepairContinuesThePlan(t *testing.T) {
	for providerID, attempt := range map[string]string{"civo://m0": "-0-2", "civo://another": "-0-1"} {
		t.Run(providerID, func(t *testing.T) {
			inWorld(t, relapsing(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", 9) })
				require.True(t, w.until(5*time.Minute, func() bool { return len(w.calls) == 1 }))
				w.pass(10 * time.Second)
				w.do(func() { w.leave("n0") })
				w.pass(time.Minute)
				require.Len(t, w.toldOf("RepairSuperseded"), 1)
				require.Empty(t, w.slots(t))
				w.do(func() { w.join("n0", providerID); w.ail("n0", 9) })
				require.True(t, w.until(10*time.Minute, func() bool { return len(w.calls) == 2 }))
				next := at(w, func() string { return w.calls[1].intent })
				require.True(t, strings.HasSuffix(next, attempt), next)
			})
		})
	}
}
