package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestForCountsFromWhenDrydockFirstSawTheAlert: the start that its sender claims shortens no wait.
// Posting the alert again, with another start or to another leader, restarts nothing.
func TestForCountsFromWhenDrydockFirstSawTheAlert(t *testing.T) {
	minutes := func(f int) func(c *remediations.Config) {
		return func(c *remediations.Config) { c.Policies[0].For = time.Duration(f) * time.Minute }
	}
	key := remediations.AlertPrefix + fingerprintOf("n0")
	seen := func(w *world) time.Time {
		a, err := remediations.DecodeAlert(key, w.nodeOf("n0").Annotations[key])
		require.NoError(t, err)
		return a.ReceivedAt
	}
	for name, test := range map[string]struct {
		config func(*remediations.Config)
		during func(w *world)
	}{
		"it says that it began an hour ago": {minutes(5), func(*world) {}},
		"it is posted again and again": {minutes(5), func(w *world) {
			for i := range 4 {
				w.do(func() { w.postSince("n0", remediations.StatusFiring, time.Now().Add(-time.Duration(i)*time.Minute)) })
				w.pass(5 * time.Second)
			}
		}},
		"its end is posted again and again, and Alertmanager says that it fires": {minutes(5), func(w *world) {
			for range 4 {
				w.do(func() { w.post("n0", remediations.StatusResolved) })
				w.pass(5 * time.Second)
				w.do(func() { w.post("n0", remediations.StatusFiring) })
				w.pass(5 * time.Second)
			}
		}},
		"another leads": {minutes(5), func(w *world) { w.restart(w.config) }},
		"another policy takes it": {minutes(5), func(w *world) {
			c := *w.config
			p := *c.Policies[0]
			p.Name = "renamed"
			c.Policies = []*remediations.Policy{&p}
			w.restart(&c)
		}},
		"a clock that was wrong noted it": {minutes(4), func(w *world) {
			a := w.config.NewAlert(w.config.Policies[0], labelsOf("n0"), remediations.StatusFiring, time.Now(), time.Now().Add(25*time.Hour))
			w.do(func() { w.edit("n0", edit(key, a.Encode())) })
			w.pass(20 * time.Second)
			require.LessOrEqual(t, time.Since(seen(w)), 20*time.Second, "it is noted again")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := modelConfig()
			test.config(c)
			inWorld(t, c, 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() {
					w.machines["n0"].backdated = true
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(time.Minute)
				first := seen(w)
				test.during(w)
				if c.Policies[0].For == 5*time.Minute {
					require.Equal(t, first, seen(w))
				}
				w.pass(5*time.Minute - time.Since(first) - 5*time.Second)
				require.Zero(t, w.callCount())
				w.pass(45 * time.Second)
				require.Equal(t, 1, w.callCount())
			})
		})
	}
}

// TestAlertThatFiresAgainWaitsForItsWholeAgeAgain: its end is on the Node, or was never posted.
func TestAlertThatFiresAgainWaitsForItsWholeAgeAgain(t *testing.T) {
	for name, said := range map[string]bool{"its end was posted": true, "nobody said that it ended": false} {
		t.Run(name, func(t *testing.T) {
			c := modelConfig()
			c.Policies[0].For = 5 * time.Minute
			inWorld(t, c, 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(20 * time.Second)
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(4 * time.Minute)
				w.do(func() {
					w.heal("n0")
					if said {
						w.post("n0", remediations.StatusResolved)
					}
				})
				w.pass(2 * time.Second)
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(4*time.Minute + 50*time.Second)
				require.Zero(t, w.callCount())
				w.pass(30 * time.Second)
				require.Equal(t, 1, w.callCount())
			})
		})
	}
}
