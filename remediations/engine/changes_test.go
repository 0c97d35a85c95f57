package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestApprovedRepairBegins: the repair waits without a time limit, names the ID to approve, and
// accepts no other ID.
func TestApprovedRepairBegins(t *testing.T) {
	conf := modelConfig()
	conf.Policies[0].Approval = true
	inWorld(t, conf, 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 1) })
		w.pass(time.Hour)
		require.Zero(t, w.callCount())
		r := w.recordOf("n0")
		require.Equal(t, remediations.ReasonAwaitingApproval, r.Hold.Reason)
		w.do(func() { w.edit("n0", edit(remediations.ApproveKey, "r9999")) })
		w.pass(time.Minute)
		require.Zero(t, w.callCount())
		require.NotContains(t, w.nodeOf("n0").Annotations, remediations.ApproveKey, "refused, and said so")
		w.do(func() { w.edit("n0", edit(remediations.ApproveKey, r.ID)) })
		w.pass(5 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		require.NotContains(t, w.nodeOf("n0").Annotations, remediations.ApproveKey)
	})
}

// TestConfigurationChangedInMidRepair: a restart brings another policy while the first reboot is
// being verified.
func TestConfigurationChangedInMidRepair(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*remediations.Config, *remediations.Policy)
		calls  int
		ends   []remediations.Outcome
	}{
		"as it was": {func(*remediations.Config, *remediations.Policy) {}, 2, []remediations.Outcome{remediations.OutcomeRecovered}},
		"renamed": {func(_ *remediations.Config, p *remediations.Policy) { p.Name = "another-name" }, 2, []remediations.Outcome{
			remediations.OutcomeCancelled, remediations.OutcomeRecovered, // the new policy takes the alert, with a repair of its own
		}},
		"removed":    {func(c *remediations.Config, _ *remediations.Policy) { c.Policies = nil }, 1, []remediations.Outcome{remediations.OutcomeCancelled}},
		"off":        {func(_ *remediations.Config, p *remediations.Policy) { p.Mode = remediations.ModeOff }, 1, []remediations.Outcome{remediations.OutcomeCancelled}},
		"shorter":    {func(_ *remediations.Config, p *remediations.Policy) { p.Plan[0].Attempts = 1 }, 1, []remediations.Outcome{remediations.OutcomeExhausted}},
		"to observe": {func(_ *remediations.Config, p *remediations.Policy) { p.Mode = remediations.ModeObserve }, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.ail("n0", 2) })
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
				w.pass(30 * time.Second)
				conf, p := *w.config, *w.config.Policies[0]
				p.Plan = append([]remediations.Step{}, p.Plan...)
				conf.Policies = []*remediations.Policy{&p}
				c.change(&conf, &p)
				w.restart(&conf)
				w.pass(90 * time.Minute)
				require.Equal(t, c.calls, w.callCount())
				require.Equal(t, c.ends, w.outcomes())
				require.Empty(t, w.slots(t), "nothing holds a slot for ever")
			})
		})
	}
}

// TestSecondAlertIsOnTheRecordOfTheMilderRepair: two alerts of two policies on one node lead to one
// repair.
func TestSecondAlertIsOnTheRecordOfTheMilderRepair(t *testing.T) {
	conf := modelConfig()
	conf.Policies[0].For = time.Minute
	conf.Policies = append(conf.Policies, kubeletDown(conf))
	conf.Provided["restart-kubelet"] = true
	inWorld(t, conf, 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() {
			w.machines["n0"].second = true
			w.ail("n0", 1)
			w.post("n0", remediations.StatusFiring)
		})
		w.pass(20 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		e := remediations.DecodeHistory(w.nodeOf("n0").Annotations[remediations.HistoryKey])[0]
		require.Equal(t, "kubelet-down", e.Policy)
		require.Equal(t, []string{"restart-kubelet:1", "reboot:1"}, e.Steps.Texts())
		require.Equal(t, []string{fingerprintOf("n0")}, e.Also)
		require.Equal(t, 2, w.callCount())
	})
}
