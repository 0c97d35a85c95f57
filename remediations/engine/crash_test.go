package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// story is one course of events. The first engine dies at a given call, and another one takes over.
type story struct {
	config *remediations.Config
	// pods is how many pods of n0 have a gated sidecar.
	pods int
	// mesh means that the nodes are in locations.
	mesh bool
	// before is what has already happened. begin is what happens next.
	before, begin func(w *world)
	// meanwhile is what happens while there is no leader. It may be nil.
	meanwhile func(t *testing.T, w *world)
	after     func(t *testing.T, w *world)
}

func stories() map[string]story {
	held := modelConfig()
	held.Policies[0].For = 2 * time.Minute
	return map[string]story{
		"two reboots cure it": {config: modelConfig(), begin: func(w *world) {
			w.ail("n0", 2)
			w.post("n0", remediations.StatusFiring)
		}, after: func(t *testing.T, w *world) {
			// An intent without a call is a spent attempt: the second reboot never happened, and a
			// person must act.
			want := remediations.OutcomeRecovered
			if w.callCount() < 2 {
				want = remediations.OutcomeExhausted
			}
			requireEnd(t, w, want)
		}},
		"held at first, and found by the poll": {config: held, begin: func(w *world) { w.ail("n0", 1) }, after: func(t *testing.T, w *world) {
			// One reboot cures it. If the first attempt never reached the provider, the second
			// does.
			require.Equal(t, 1, w.callCount())
			requireEnd(t, w, remediations.OutcomeRecovered)
		}},
		"nothing cures it": {config: modelConfig(), begin: func(w *world) { w.ail("n0", 9) }, after: func(t *testing.T, w *world) {
			requireEnd(t, w, remediations.OutcomeExhausted)
		}},
		"replaced": {config: wholeConfig(), begin: func(w *world) { w.ail("n0", 9) }, after: requireReplaced},
		"announced and drained": {config: showing(), begin: func(w *world) { w.ail("n0", 9) }, after: func(t *testing.T, w *world) {
			requireReplaced(t, w)
			for node := range w.nodes {
				require.Empty(t, announcedOn(w.nodeOf(node)), node)
			}
		}},
		"two sidecars wait": {config: sidecarConfig(), pods: 2, begin: func(w *world) {
			w.closeOn("n0")
			w.postPod(podName(0))
			w.postPod(podName(1))
		}, after: func(t *testing.T, w *world) {
			// An intent whose task was never sent is a spent attempt. The next one opens the gate.
			require.True(t, at(w, w.allOpen))
			require.LessOrEqual(t, w.approvalCount(), 2)
			requireNoTrace(t, w)
		}},
		"nothing opens a gate": {config: sidecarConfig(), pods: 1, begin: func(w *world) {
			w.pod(podName(0)).wedged = true
			w.closeOn("n0")
		}, after: func(t *testing.T, w *world) {
			require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.sidecarOutcomes())
			require.LessOrEqual(t, w.approvalCount(), 3)
			require.Len(t, w.pod(podName(0)).tasks, w.approvalCount(), "each its own task")
			require.Equal(t, remediations.PhaseExhausted, w.sidecarOf(podName(0)).Phase)
			require.False(t, w.nodeOf("n0").Spec.Unschedulable)
		}},
		"a leader is replaced": {config: leaderConfig(), mesh: true, begin: func(w *world) { w.darken("n0", true) }, after: func(t *testing.T, w *world) {
			// An intent whose move was never made, or only half, is a spent attempt. The next one
			// cures the location.
			require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.leaderOutcomes())
			require.LessOrEqual(t, len(w.moves()), 2)
			require.False(t, at(w, func() bool { return w.mesh.places["l0"].bad }))
			require.Empty(t, at(w, w.leaderRecords))
			require.Empty(t, w.slots(t))
		}},
		"no successor is any better": {config: leaderConfig(), mesh: true, begin: func(w *world) {
			w.mesh.members["n1"].darkLeading, w.mesh.members["n2"].darkLeading = true, true
			w.darken("n0", true)
		}, after: func(t *testing.T, w *world) {
			require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.leaderOutcomes())
			require.LessOrEqual(t, len(w.moves()), 2)
			require.Equal(t, map[string]string{"n0": "by hand", "n2": "by hand"}, w.keysOf("l0"))
			require.Equal(t, remediations.PhaseExhausted, w.leaderRecordOn("n0").Phase)
			require.Empty(t, w.slots(t))
		}},
		"a person resets it": {config: modelConfig(), before: func(w *world) {
			w.do(func() { w.ail("n0", 9) })
			w.until(time.Hour, func() bool { return w.nodes["n0"].Spec.Unschedulable })
			w.pass(time.Minute)
		}, begin: func(w *world) {
			w.heal("n0")
			w.edit("n0", func(n *corev1.Node) { n.Annotations[remediations.ResetKey] = "true" })
		}, after: func(t *testing.T, w *world) {
			require.False(t, w.nodeOf("n0").Spec.Unschedulable)
			require.Nil(t, w.recordOf("n0"))
			require.Empty(t, w.slots(t))
			require.NotContains(t, w.nodeOf("n0").Annotations, remediations.ResetKey)
		}},
	}
}

// requireReplaced: an intent without a call is a replacement that never happened, and a person must
// act.
func requireReplaced(t *testing.T, w *world) {
	calls := w.callsOf()
	require.Subset(t, []string{"reboot", "replace"}, calls)
	require.LessOrEqual(t, len(calls), 2)
	require.Equal(t, 2, w.evicted(), "each pod once")
	require.Empty(t, w.orphans(t))
	if len(calls) == 0 || calls[len(calls)-1] != "replace" {
		require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.outcomes())
		require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
		return
	}
	require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
	e := remediations.DecodeHistory(w.nodeOf("n60").Annotations[remediations.HistoryKey])
	require.Len(t, e, 1)
	require.Equal(t, []string{"reboot:1", "drain:1", "replace:1"}, e[0].Steps.Texts())
	require.Empty(t, w.slots(t))
	// A repair with a slot but without a recorded intent counts as well. Such a count is too high,
	// which is safe.
	require.LessOrEqual(t, len(at(w, func() []ledger.Begun { return w.book().Repairs["civo://m0"] })), 2)
}

func requireEnd(t *testing.T, w *world, want remediations.Outcome) {
	t.Helper()
	require.Equal(t, []remediations.Outcome{want}, w.outcomes())
	require.Empty(t, w.slots(t))
	require.Equal(t, want == remediations.OutcomeExhausted, w.nodeOf("n0").Spec.Unschedulable)
	require.Equal(t, want == remediations.OutcomeExhausted, w.recordOf("n0") != nil)
	require.LessOrEqual(t, w.callCount(), 2)
}

// play runs a story. If crashAt is 0, no engine dies. It returns the first engine's port calls that
// change something.
func (s story) play(t *testing.T, crashAt int, after bool) (log []string) {
	inWorld(t, s.config, 6, func(t *testing.T, w *world) {
		for i := range s.pods {
			w.host(podName(i), "n0")
		}
		if s.mesh {
			w.do(w.spread)
		}
		first := w.start()
		w.pass(20 * time.Second) // the ledger exists, and Alertmanager was queried
		if s.before != nil {
			s.before(w)
		}
		w.do(func() {
			first.changes, first.log = 0, nil
			first.crashAt, first.crashAfter = crashAt, after
			s.begin(w)
		})
		if crashAt > 0 {
			require.True(t, w.until(2*time.Hour, func() bool { return first.dead }), "it never came to step %d", crashAt)
			if s.meanwhile != nil {
				s.meanwhile(t, w)
			}
			w.pass(15 * time.Second) // the lease must expire
			w.start()
		}
		w.pass(2 * time.Hour)
		w.do(func() { log = slices.Clone(first.log) })
		s.after(t, w)
	})
	return log
}

// TestCrashAtEveryStep kills the engine before and after each of its port calls that change
// something. In every case, each attempt reaches the provider at most once, and the repair comes to
// its end.
func TestCrashAtEveryStep(t *testing.T) {
	all := stories()
	for i, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := s.play(t, 0, false)
			require.GreaterOrEqual(t, len(steps), 2)
			t.Logf("the steps are %s", strings.Join(steps, " | "))
			for k, step := range steps {
				if k%every() != i%every() { // a sample has other steps of each story
					continue
				}
				for _, after := range []bool{false, true} {
					when := map[bool]string{false: "before", true: "after"}[after]
					t.Run(fmt.Sprintf("%s step %02d %s", when, k+1, step), func(t *testing.T) {
						t.Parallel()
						s.play(t, k+1, after)
					})
				}
			}
		})
	}
}
