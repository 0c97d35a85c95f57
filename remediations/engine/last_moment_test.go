package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/soak"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// sleeper is a clock after time has passed since: by the monotonic clock as long as the machine was
// awake, and by the wall clock.
type sleeper struct {
	clock.RealClock
	since       time.Time
	awake, wall time.Duration
}

func (c sleeper) Now() time.Time { return awakeFor(c.since.Add(c.wall), c.awake-c.wall) }

// awakeFor is the time with its monotonic reading moved.
func awakeFor(t time.Time, by time.Duration) time.Time { return soak.Awake(t, by) }

// fresh is a Fleet that has the Node, and nothing else.
type fresh struct{ Fleet }

func (fresh) Node(context.Context, string) (*corev1.Node, error) { return &corev1.Node{}, nil }

// TestAMachineThatSleptMakesNoCall: both clocks are compared. The monotonic one stands still while
// a machine is suspended, and the other one may be set back.
func TestAMachineThatSleptMakesNoCall(t *testing.T) {
	for name, c := range map[string]struct {
		awake, wall time.Duration
		may         bool
	}{
		"a moment":               {2 * time.Second, 2 * time.Second, true},
		"as long as it may be":   {10 * time.Second, 10 * time.Second, true},
		"too long":               {11 * time.Second, 11 * time.Second, false},
		"suspended for a minute": {time.Second, time.Minute, false},
		"its clock was set back": {11 * time.Second, -time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			asleep := sleeper{since: now, awake: c.awake, wall: c.wall}
			require.Equal(t, c.awake, asleep.Now().Sub(now))
			require.Equal(t, c.wall, asleep.Now().Round(0).Sub(now.Round(0)))
			p := &pass{Engine: &Engine{core: wholeCore(), Options: Options{Clock: asleep, Fleet: fresh{}}}, ctx: t.Context(), now: now}
			err := p.mayStill("n0", func(context.Context, *corev1.Node) error { return nil })()
			require.Equal(t, c.may, err == nil, "%v", err)
		})
	}
}

// TestAnIntentThatIsTooOldIsNotWritten: the ledger took so long that the call could not be made any
// more.
func TestAnIntentThatIsTooOldIsNotWritten(t *testing.T) {
	for name, takes := range map[string]time.Duration{"twelve seconds": 12 * time.Second, "two seconds": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				first := w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					first.stall, first.stallAt = takes, "save r"
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(10 * time.Minute)
				require.Equal(t, 1, w.callCount())
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
				for _, e := range w.events {
					if r := modelRegistry.ReadJournal(e.node).Record; r != nil && r.Phase == remediations.PhaseActing {
						require.Less(t, e.at.Sub(r.Intent.At), IntentGood)
					}
				}
			})
		})
	}
}

// TestALateAnswerLeavesTheCallUnderWayAlone: an earlier attempt is answered while the next one is
// under way.
func TestALateAnswerLeavesTheCallUnderWayAlone(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		first := w.start()
		w.do(func() { w.ail("n0", 9) })
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
		w.do(func() { w.mood.after = 20 * time.Second })
		require.True(t, w.until(15*time.Minute, func() bool { return len(w.calls) == 2 }))
		second := w.recordOf("n0").Intent.ID
		first.engine.Late("n0", w.calls[0].intent, remediations.CallRefused, errors.New("no quota"))
		first.engine.calls <- called{of: target{node: "n0"}, step: "reboot", call: lifecycle.Call{IntentID: w.calls[0].intent, Outcome: remediations.CallRefused, Why: "no quota"}}
		w.pass(10 * time.Second)
		require.Equal(t, remediations.PhaseActing, w.recordOf("n0").Phase, "nobody has answered this one")
		w.pass(15 * time.Second)
		require.Equal(t, second, w.recordOf("n0").Intent.ID)
		require.Equal(t, remediations.CallAccepted, w.recordOf("n0").Intent.Outcome)
	})
}

// TestPersonsWriteMakesTheSilencesBeReadAgain: a person who removes a pause may have created a
// silence a moment before.
func TestPersonsWriteMakesTheSilencesBeReadAgain(t *testing.T) {
	for name, silences := range map[string]bool{"made a silence": true, "made none": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.ail("n0", 1)
					w.hold("n0", edit(remediations.PauseKey, "true"))
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(5 * time.Second)
				require.Zero(t, w.callCount())
				w.do(func() { w.machines["n0"].silenced = silences; w.unhold("n0") })
				w.pass(3 * time.Second)
				require.Equal(t, !silences, w.callCount() == 1)
			})
		})
	}
}

// TestAnotherNodeOfThatNameIsNotTakenForTheOneWritten: a write of this process on a Node proves
// nothing about the next Node of the same name, whatever their versions are.
func TestAnotherNodeOfThatNameIsNotTakenForTheOneWritten(t *testing.T) {
	node := func(uid types.UID, version, what string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0", UID: uid, ResourceVersion: version, Labels: map[string]string{"is": what}}}
	}
	for name, c := range map[string]struct {
		uid  types.UID
		sees string
	}{"the cache is behind": {"a", "written"}, "another Node": {"b", "cached"}} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{Config: modelConfig(), Metrics: prometheus.NewRegistry(), Log: logr.Discard()})
			e.remember("n0").written, e.memory["n0"].over = node("a", "200", "written"), node("a", "100", "read")
			e.wrote["n0"] = e.memory["n0"]
			require.Equal(t, c.sees, e.caughtUp([]*corev1.Node{node(c.uid, "150", "cached")})[0].Labels["is"])
		})
	}
}
