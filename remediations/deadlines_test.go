package remediations_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
)

// TestAForgedDeadlineLastsNoLongerThanItsPhase: a record without a slot has a deadline that is
// years away. It counts in the fleet for as long as the policy allows for its phase, and a few
// minutes more.
func TestAForgedDeadlineLastsNoLongerThanItsPhase(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	c := &Config{}
	p := &Policy{Name: "p", Mode: ModeEnforce, Plan: []Step{{Name: "reboot", Wait: 40 * time.Minute, Attempts: 1}, {Name: "drain", Timeout: 25 * time.Minute, Attempts: 1}}}
	c.Policies = []*Policy{p}
	for name, s := range map[string]struct {
		phase Phase
		step  StepRef
		want  time.Duration
	}{
		"a call":             {PhaseActing, StepRef{Index: 0, Name: "reboot", Attempt: 1}, ActingFor},
		"a drain":            {PhaseActing, StepRef{Index: 1, Name: "drain", Attempt: 1}, 25 * time.Minute},
		"a proof":            {PhaseVerifying, StepRef{Index: 0, Name: "reboot", Attempt: 1}, 40 * time.Minute},
		"what has not begun": {PhasePending, StepRef{Index: 0, Name: "reboot", Attempt: 1}, PendingFor},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Record{ID: "r1", Policy: "p", Phase: s.phase, Step: s.step, Began: now, Since: now, Deadline: FarAway, Intent: &Intent{ID: "r1-0-1", At: now}}
			clamped, changed := c.Clamped(p, r, now)
			require.True(t, changed)
			require.Equal(t, s.want, clamped.Deadline.Sub(now))
			from, until := c.Flight(&corev1.Node{}, r)
			require.Equal(t, now, from)
			require.Equal(t, ActingFor+s.want+OverdueFor, until.Sub(now))
		})
	}
}
