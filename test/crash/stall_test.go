package crash

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// tooLate is when a call may go out no more, counted from before its intent: invariant 4's 10 s.
const tooLate = 11 * time.Second

// TestALeaderThatStallsMakesNoLateCall stops the leader with SIGSTOP at three places between the
// decision and the call. Another replica takes over, makes the next attempt and ends the repair.
// Then the old leader continues in the middle of its own attempt. A call from it would reboot a
// healthy machine: it must make no call.
//
// The control stops it at the same place for a moment only: the call goes out then, once.
func TestALeaderThatStallsMakesNoLateCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at   func(y *yard, c *call, when moment) bool
		lost bool // the other replica finds an intent, so that an attempt is spent
	}{
		"between the slot and the intent": {func(_ *yard, c *call, when moment) bool {
			return c.what == "ledger" && when == after && c.first == "ledger UPDATE repairs=1 slots=1 node-0 attempt 1"
		}, false},
		"between the intent and the look at the provider": {func(_ *yard, c *call, when moment) bool {
			return c.first == "node-0 PATCH Acting reboot:1" && when == after && c.answer.StatusCode == http.StatusOK // not one that lost a race
		}, true},
		"between the look at the provider and the call": {func(y *yard, c *call, when moment) bool {
			return y.looked(c) && when == after
		}, true},
	} {
		for until, least := range map[string]time.Duration{"until the other has ended it": 0, "until it is too late": tooLate} {
			t.Run(name+" "+until, func(t *testing.T) {
				t.Parallel()
				y := newYard(t, shared(t), options{replicas: 2, wait: patient})
				stopped := y.stopAt(c.at)
				y.start()
				y.fail(0)
				first := <-stopped
				late := time.After(least)

				y.ended(0) // by the other one
				calls := y.provider.calls(y.nodes[0])
				require.Len(t, calls, 1)
				require.Equal(t, map[bool]string{false: "1", true: "2"}[c.lost], attemptOf(calls[0]))
				<-late
				led := first.renewed.Load()
				y.awake(first)
				y.knows(first, led)
				y.kept()
				require.Equal(t, calls, y.provider.calls(y.nodes[0]), "no call of the first leader's")
			})
		}
		t.Run("control: a moment "+name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, shared(t), options{replicas: 2, steady: true, wait: patient})
			stopped := y.stopAt(c.at)
			y.start()
			y.fail(0)
			first := <-stopped
			y.awake(first)
			y.kept()
			calls := y.provider.calls(y.nodes[0])
			require.Len(t, calls, 1)
			require.Equal(t, "1", attemptOf(calls[0]))
			require.Equal(t, first.index, y.leading().index, "the first leader's own")
		})
	}
}

// TestACallIsNotMadeAfterTenSeconds stops a Drydock that knows no leaders between its intent and
// its call, for longer than the call may wait. It has lost nothing but time, so that only its
// intent's age forbids the call.
func TestACallIsNotMadeAfterTenSeconds(t *testing.T) {
	t.Parallel()
	for name, stall := range map[string]time.Duration{"too long": tooLate, "control: a moment": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, busy := stallsBeforeItsCall(t, stall)
			for i := 1; stall < tooLate && busy && i < 5; i++ { // then it was no moment, and the control begins again
				call, busy = stallsBeforeItsCall(t, stall)
			}
			// Whether the attempt was given back or counts as spent, what slept is not what was made.
			require.Equal(t, stall < tooLate, strings.HasSuffix(call, "-0-1"), "the call is %s", call)
		})
	}
}

// stallsBeforeItsCall gives the one call of a Drydock that stalls before it for so long. busy: the
// machine was, so that it woke late, or could not look at its Node in time.
func stallsBeforeItsCall(t *testing.T, stall time.Duration) (made string, busy bool) {
	t.Helper()
	const soon = 8 * time.Second // after the intent: time is left to make the call in
	y := newYard(t, shared(t), options{unled: true, wait: patient})
	var once sync.Once
	var mu sync.Mutex
	var intent time.Time
	y.on(func(c *call, when moment) lab.Verdict {
		mu.Lock()
		if intent.IsZero() && when == before && c.first == "node-0 PATCH Acting reboot:1" {
			intent = time.Now()
		}
		busy = busy || !intent.IsZero() && strings.Contains(c.name, "held "+string(remediations.ReasonBlind))
		mu.Unlock()
		// It asks the provider which machines there are, and calls then.
		if y.looked(c) && when == before {
			once.Do(func() {
				first := y.replicas[0]
				y.stop(first)
				time.AfterFunc(stall, func() {
					mu.Lock()
					busy = busy || time.Since(intent) > soon
					mu.Unlock()
					y.signal(first, syscall.SIGCONT)
				})
			})
		}
		return lab.Pass
	})
	y.start()
	y.fail(0)
	y.kept()
	calls := y.provider.calls(y.nodes[0])
	require.Len(t, calls, 1)
	mu.Lock()
	defer mu.Unlock()
	return calls[0], busy
}

// stopAt stops the replica that makes that call, once, and says which it was. A call to the
// provider is the leader's.
func (y *yard) stopAt(at func(y *yard, c *call, when moment) bool) <-chan *replica {
	stopped := make(chan *replica, 1)
	var once sync.Once
	y.on(func(c *call, when moment) lab.Verdict {
		if at(y, c, when) {
			once.Do(func() {
				r := c.from
				if r == nil {
					r = y.leading()
				}
				y.stop(r)
				stopped <- r
			})
		}
		return lab.Pass // the answer waits in the connection until the process wakes
	})
	return stopped
}

// looked says that the call is the look at the provider that comes right before the reboot: another
// one comes before the intent, so that what could only be refused costs no attempt.
func (y *yard) looked(c *call) bool {
	if c.from != nil || c.name != "" {
		return false
	}
	n, err := y.lab.Client().CoreV1().Nodes().Get(context.WithoutCancel(y.t.Context()), y.nodes[0], metav1.GetOptions{})
	return err == nil && remediations.InFlight(n) != nil
}

func (y *yard) signal(r *replica, s syscall.Signal) {
	y.note("replica %d gets %s", r.index, s)
	if err := r.Signal(s); err != nil {
		y.breach("%v", err)
	}
}

// stop stops the process, and returns when none of its threads runs any more: the signal alone does
// not wait for that.
func (y *yard) stop(r *replica) {
	pid := r.PID()
	y.signal(r, syscall.SIGSTOP)
	tasks := fmt.Sprintf("/proc/%d/task/*/stat", pid)
	for running, end := true, time.Now().Add(10*time.Second); running && time.Now().Before(end); {
		running = false
		files, _ := filepath.Glob(tasks) // the pattern is good
		for _, f := range files {
			stat, err := os.ReadFile(f)
			// "1234 (name) S ...": the state is behind the name.
			_, state, _ := strings.Cut(string(stat), ") ")
			running = running || (err == nil && !strings.HasPrefix(state, "T"))
		}
	}
}

// awake continues a stopped replica.
func (y *yard) awake(r *replica) { y.signal(r, syscall.SIGCONT) }

// knows waits until the process that slept has found out how it stands: it ends since another
// leads, or, where that one has given the lead up meanwhile, it leads again. Whatever it was at
// when it slept is behind it then.
func (y *yard) knows(r *replica, led int64) {
	y.t.Helper()
	require.Eventually(y.t, func() bool { return r.deaths.Load() > 0 || r.renewed.Load() > led }, lab.Patience, 20*time.Millisecond)
}

// TestASlotThatAFormerLeaderLeftIsFreed writes a slot into the ledger behind the leader's back, as
// a leader does that stalls, wakes, and is refused by the Node: it reads the ledger again after the
// first conflict, so the ledger's version does not stop it. Nothing else makes the one that leads
// write, or read, the ledger.
func TestASlotThatAFormerLeaderLeftIsFreed(t *testing.T) {
	t.Parallel()
	y := newYard(t, shared(t), options{steady: true})
	y.start()
	y.sees()
	maps := y.lab.Client().CoreV1().ConfigMaps(y.name)
	cm, err := maps.Get(t.Context(), ledgerName, metav1.GetOptions{})
	require.NoError(t, err)
	l, err := ledger.Decode(cm.Data)
	require.NoError(t, err)
	y.view.mu.Lock()
	uid := y.view.nodes[y.nodes[0]].UID
	y.view.mu.Unlock()
	l.Slots = append(l.Slots, ledger.Slot{
		Node: y.nodes[0], UID: string(uid), Repair: "gone00", Attempt: "gone00-0-1", Policy: "node-not-ready", Since: time.Now().Add(-time.Minute).UTC(),
	})
	cm.Data = l.Encode()
	_, err = maps.Update(t.Context(), cm, metav1.UpdateOptions{})
	require.NoError(t, err)
	y.await("the slot to be seen", func(v *view) bool { return v.most == 1 })
	y.await("the slot to be freed", func(v *view) bool { return len(v.ledger.Slots) == 0 })
	y.fail(0) // and taken again
	y.kept()
}
