package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// lease is the lease of every node.
type lease struct {
	mu sync.Mutex
	// free and take are the results of Free and Take. If they are nil, the node is free.
	free, take error
	taken      []string
}

func (l *lease) Free(context.Context, Machine, string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.free
}

func (l *lease) Take(_ context.Context, m Machine, _ string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.take == nil {
		l.taken = append(l.taken, m.Node)
	}
	return l.take
}

func (l *lease) say(free, take error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free, l.take = free, take
}

func (l *lease) times() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.taken)
}

// TestANodeThatAnotherSystemHasReservedIsLeftAlone: nothing is done and no attempt is spent,
// whether the reservation exists before the intent or only right before the step. No step is passed
// over. When the node is free, it is taken before each disruptive step.
func TestANodeThatAnotherSystemHasReservedIsLeftAlone(t *testing.T) {
	taken := fmt.Errorf("%w: NodeHealthCheck-workers holds Lease medik8s-leases/node-n0", ErrTaken)
	plans := map[string][]string{"a call": {"reboot"}, "a drain": {"drain", "reboot"}, "a step that may be passed over": {"restart-kubelet", "reboot"}}
	for name, c := range map[string]struct {
		free, take error
		reason     remediations.Reason
		says       string
	}{
		"taken before the intent": {taken, taken, remediations.ReasonNodeUnderRepair, "NodeHealthCheck-workers"},
		"nobody can say":          {errors.New("leases are forbidden"), nil, remediations.ReasonProviderAbsent, "leases are forbidden"},
		"taken after the intent":  {nil, taken, remediations.ReasonNodeUnderRepair, "NodeHealthCheck-workers"},
	} {
		for of, plan := range plans {
			if name == "taken after the intent" && plan[0] == "drain" {
				continue // see TestADrainEvictsNothingWhileAnotherSystemHasTheNode
			}
			t.Run(name+", "+of, func(t *testing.T) {
				config := planned(plan...)
				config.Reserves = true
				inWorld(t, config, 6, func(t *testing.T, w *world) {
					l := &lease{free: c.free, take: c.take}
					w.reservers = []Reserver{&lease{}, l}
					w.start()
					w.pass(16 * time.Second)
					w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
					w.pass(time.Hour)
					require.Zero(t, w.callCount())
					require.Empty(t, at(w, func() []providerCall { return slices.Clone(w.evictions) }))
					require.False(t, w.nodeOf("n0").Spec.Unschedulable)
					require.Zero(t, l.times())
					if name == "nobody can say" {
						require.Contains(t, at(w, func() string { return w.book().Status.Holds[c.reason] }), c.says)
					} else {
						require.Equal(t, c.reason, w.recordOf("n0").Hold.Reason)
						require.Contains(t, w.recordOf("n0").Hold.Message, c.says)
						require.Empty(t, w.recordOf("n0").Passed)
					}
					l.say(nil, nil)
					w.pass(30 * time.Minute)
					require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
					require.Equal(t, plan[0]+":1", w.ended[0].Steps[0].String())
					require.GreaterOrEqual(t, l.times(), len(w.ended[0].Steps))
				})
			})
		}
	}
}

// TestADrainEvictsNothingWhileAnotherSystemHasTheNode: the evictions begin when the other system is
// done.
func TestADrainEvictsNothingWhileAnotherSystemHasTheNode(t *testing.T) {
	config := planned("drain", "reboot")
	config.Reserves = true
	inWorld(t, config, 6, func(t *testing.T, w *world) {
		l := &lease{take: ErrTaken}
		w.reservers = []Reserver{&lease{}, l}
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { fullOf(3)(w); w.ail("n0", 2); w.post("n0", remediations.StatusFiring) })
		w.pass(2 * time.Minute)
		require.Equal(t, remediations.PhaseActing, w.recordOf("n0").Phase)
		require.Empty(t, at(w, func() []providerCall { return slices.Clone(w.evictions) }))
		l.say(nil, nil)
		w.pass(2 * time.Minute)
		require.NotEmpty(t, at(w, func() []providerCall { return slices.Clone(w.evictions) }))
	})
}

// TestReservationsAreNotReadWithoutTheConfiguration: nor are they read for a step that disrupts
// nothing.
func TestReservationsAreNotReadWithoutTheConfiguration(t *testing.T) {
	inWorld(t, planned("reboot"), 6, func(t *testing.T, w *world) {
		l := &lease{free: ErrTaken, take: ErrTaken}
		w.reservers = []Reserver{&lease{}, l}
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
		w.pass(20 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
	})
}
