package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// breakersTold are the Events about breakers, in their order.
func (w *world) breakersTold() (out []Event) {
	for _, e := range at(w, func() []Event { return w.told }) {
		if strings.HasPrefix(e.Reason, "Breaker") {
			out = append(out, e)
		}
	}
	return out
}

// TestEachChangeOfABreakerIsAnEventAndALine: the changes are those of a storm, of the trial that
// ends it, and of a second storm. Each change has an Event of its own, with a unique action, so
// that Kubernetes folds none of them into another. A change of leaders is not a change of a
// breaker.
func TestEachChangeOfABreakerIsAnEventAndALine(t *testing.T) {
	conf := modelConfig()
	conf.Limits.Concurrent.Value = 3
	inWorld(t, conf, 6, func(t *testing.T, w *world) {
		lines := logOf(w)
		first := w.start()
		w.pass(16 * time.Second)
		require.Empty(t, w.breakersTold(), "the control: nothing is unhealthy")
		storm := func() {
			w.do(func() {
				for _, n := range []string{"n1", "n2", "n3", "n4"} {
					w.ail(n, 1)
				}
			})
			w.pass(3 * time.Minute)
		}
		storm()
		w.do(func() { first.dead = true; first.cancel() })
		w.start()
		w.pass(time.Minute)
		w.do(func() { w.heal("n1"); w.heal("n2") })
		w.pass(20 * time.Minute)
		storm()
		var reasons []string
		actions := map[string]bool{}
		for _, e := range w.breakersTold() {
			reasons = append(reasons, e.Reason)
			require.False(t, actions[e.Action], "two Events with the action %s", e.Action)
			actions[e.Action] = true
			require.Equal(t, e.Reason == "BreakerOpened", e.Warning, e.Reason)
			require.True(t, slices.ContainsFunc(lines(), func(l map[string]any) bool { return l["reason"] == e.Reason && l["msg"] == e.Note }), e.Note)
		}
		require.Equal(t, []string{"BreakerOpened", "BreakerHalfOpen", "BreakerHalfOpen", "BreakerClosed", "BreakerOpened"}, reasons)
		require.Contains(t, w.breakersTold()[2].Note, " of node n", "the repair that is tried has its node")
	})
}

// TestALongHoldOfTheFleetIsAnEventOnEachNode: the Event comes once for each node and reason, after
// ten minutes. At most one of these Events is sent in a second. A shorter hold is the control: the
// Event about the ledger is enough.
func TestALongHoldOfTheFleetIsAnEventOnEachNode(t *testing.T) {
	const nodes, ill = 40, 20
	conf := modelConfig()
	conf.Limits.Unhealthy.Value = 20
	inWorld(t, conf, nodes, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() {
			for i := range ill {
				w.ail(fmt.Sprintf("n%d", i), 1)
				w.post(fmt.Sprintf("n%d", i), remediations.StatusFiring)
			}
		})
		onNodes := func() (out []heldOn) {
			for _, h := range at(w, func() []heldOn { return w.toldOn }) {
				if h.node != "" && strings.HasPrefix(h.note, string(remediations.ReasonFleetUnhealthy)) {
					out = append(out, h)
				}
			}
			return out
		}
		w.pass(9 * time.Minute)
		require.Empty(t, onNodes())
		require.Equal(t, 1, w.heldAs(remediations.ReasonFleetUnhealthy))
		w.pass(3 * time.Minute)
		w.pass(2 * time.Hour)
		told := onNodes()
		require.Len(t, told, ill)
		of := map[string]bool{}
		for i, h := range told {
			require.False(t, of[h.node], "%s was told twice", h.node)
			of[h.node] = true
			require.Contains(t, h.note, "(has held since ")
			if i > 0 {
				require.GreaterOrEqual(t, h.at.Sub(told[i-1].at), time.Second)
			}
		}
		require.Less(t, told[len(told)-1].at.Sub(told[0].at), 2*time.Minute)
		require.Zero(t, w.callCount())
	})
}

// TestAShortHoldOfTheFleetIsNotAnEventOnTheNode: not even if it repeats again and again.
func TestAShortHoldOfTheFleetIsNotAnEventOnTheNode(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		for range 4 {
			w.do(func() {
				for _, n := range []string{"n1", "n2", "n3", "n4"} {
					w.ail(n, 1)
				}
			})
			w.pass(8 * time.Minute)
			w.do(func() {
				for _, n := range []string{"n1", "n2", "n3", "n4"} {
					w.heal(n)
				}
			})
			w.pass(20 * time.Minute)
		}
		require.Positive(t, w.heldAs(remediations.ReasonFleetUnhealthy))
		for _, h := range at(w, func() []heldOn { return w.toldOn }) {
			require.False(t, h.node != "" && strings.HasPrefix(h.note, string(remediations.ReasonFleetUnhealthy)), "%s: %s", h.node, h.note)
		}
	})
}

// TestHoldsThatEndByThemselvesDoNotWarn: these holds are the normal course of a repair. The control
// in each case is the next hold, which only a person's approval ends.
func TestHoldsThatEndByThemselvesDoNotWarn(t *testing.T) {
	for reason, set := range map[remediations.Reason]func(*remediations.Config){
		remediations.ReasonTooYoung:      func(c *remediations.Config) { c.Policies[0].For = 5 * time.Minute },
		remediations.ReasonCooldown:      func(c *remediations.Config) { c.Policies[0].Cooldown = 5 * time.Minute },
		remediations.ReasonOutsideWindow: func(c *remediations.Config) { c.Windows = fromFivePastMidnight() },
	} {
		t.Run(string(reason), func(t *testing.T) {
			conf := modelConfig()
			conf.Policies[0].Approval, conf.Policies[0].Cooldown = true, 0
			set(conf)
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.edit("n0", edit(remediations.HistoryKey, remediations.EncodeEntries([]remediations.Entry{{
						ID: "abc234", Policy: conf.Policies[0].Name, Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{{Name: "reboot", Number: 1}},
						Began: time.Now().Add(-time.Minute), Ended: time.Now(), Cause: "f00df00df00df00d",
					}})))
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(15 * time.Minute)
				warns := map[remediations.Reason]bool{}
				for _, e := range w.toldOf("RepairHeld") {
					said, _, _ := strings.Cut(e.Note, ":")
					warns[remediations.Reason(said)] = e.Warning
				}
				require.Contains(t, warns, reason)
				require.False(t, warns[reason])
				require.True(t, warns[remediations.ReasonAwaitingApproval], "the control: %v", warns)
			})
		})
	}
}

// fromFivePastMidnight is a window that opens five minutes after a world begins.
func fromFivePastMidnight() []remediations.Window {
	return []remediations.Window{{From: remediations.WallTime{Minute: 5}, To: remediations.WallTime{Hour: 12}, Location: time.UTC}}
}
