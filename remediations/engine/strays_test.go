package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// TestAlertThatNoPolicyTakesIsReported: the alert is routed to Drydock, and nothing is done for it.
// There is one Event, and the status has a line. The control is the same alert with a policy that
// takes it.
func TestAlertThatNoPolicyTakesIsReported(t *testing.T) {
	const begins = `the alert "NodeNotReady" is active and routed to Drydock, but Drydock does nothing for it: `
	for name, c := range map[string]struct {
		change func(c *remediations.Config)
		begin  func(w *world)
		says   string
	}{
		"no policy matches": {
			func(c *remediations.Config) { c.Policies = c.Policies[:0] }, func(*world) {},
			begins + `no policy matches its labels; its label remediation is "node-not-ready"; correct the label in the rule, or set remediation to "none" if Drydock is not to act on the alert`,
		},
		"no node is named": {
			func(c *remediations.Config) { c.Policies[0].Labels = []string{"host"} }, func(*world) {},
			begins + "policy node-not-ready cannot take it: label host names nothing to repair: ",
		},
		"there is no such node": {
			func(*remediations.Config) {}, func(w *world) {
				delete(w.nodes, "n0")
				w.events = append(w.events, nodeEvent{at: time.Now(), name: "n0"})
			},
			begins + `policy node-not-ready cannot take it: no Node has the name "n0"; `,
		},
		"the policy is off":        {func(c *remediations.Config) { c.Policies[0].Mode = remediations.ModeOff }, func(*world) {}, ""},
		"a policy takes it":        {func(*remediations.Config) {}, func(*world) {}, ""},
		"it is not routed here":    {func(c *remediations.Config) { c.Policies, c.Receiver = c.Policies[:0], "elsewhere" }, func(*world) {}, ""},
		"somebody has silenced it": {func(c *remediations.Config) { c.Policies = c.Policies[:0] }, func(w *world) { w.machines["n0"].silenced = true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			conf := modelConfig()
			c.change(conf)
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.nonsense = nil
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", 9); c.begin(w) })
				w.pass(4 * time.Minute)
				require.Empty(t, heldAsStray(w), "it may be over in a moment")
				w.pass(4 * time.Minute)
				held := heldAsStray(w)
				line := at(w, func() string { return mustLedger(w).Status.Holds[remediations.ReasonAlertUnconfirmed] })
				if c.says == "" {
					require.Empty(t, held)
					require.NotContains(t, line, "Drydock does nothing for it")
					return
				}
				require.Len(t, held, 1)
				require.Contains(t, held[0], c.says)
				require.Contains(t, line, c.says)
				require.Zero(t, w.callCount())
				w.do(func() { delete(w.machines, "n0") })
				w.pass(5 * time.Minute)
				require.Empty(t, at(w, func() string { return mustLedger(w).Status.Holds[remediations.ReasonAlertUnconfirmed] }), "it is over with the alert")
			})
		})
	}
}

func heldAsStray(w *world) (notes []string) {
	for _, e := range w.toldOf("RepairHeld") {
		if strings.Contains(e.Note, "Drydock does nothing for it") {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

// TestAStrayShowsItsSpaces: its message has a bounded length. An alert whose rule marks it as meant
// for people is not a stray.
func TestAStrayShowsItsSpaces(t *testing.T) {
	c, none := modelConfig(), func(string) *corev1.Node { return nil }
	of := func(remediation string) alerts.Alert {
		return alerts.Alert{Active: true, Receivers: []string{"drydock"}, Labels: map[string]string{"alertname": "NodeNotReady", "node": "n0", "remediation": remediation}}
	}
	require.Contains(t, strayWords(c, of("node-not-ready ").Labels, none), `its label remediation is "node-not-ready "`)
	require.Less(t, len(strayWords(c, of(strings.Repeat("x", 4000)).Labels, none)), 600)
	for remediation, want := range map[string]bool{"node-not-ready ": true, "none": false, "": false} {
		require.Equal(t, want, stray(c, of(remediation), remediations.MisrouteNoPolicy), remediation)
	}
	require.False(t, stray(c, of("x"), remediations.MisrouteOtherCluster))
}
