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

// tooLate is how long after its intent a call may leave at the latest (the 10 s of invariant 4). It
// is counted from before the intent.
const tooLate = 11 * time.Second

// TestALeaderThatStallsMakesNoLateCall stops the leader with SIGSTOP at three places between the
// decision and the call. Another replica becomes the leader, makes the next attempt and ends the
// repair. Then the old leader continues in the middle of its own attempt. Its call would reboot a
// healthy machine, so it must make no call.
//
// The control stops the leader at the same place only for a moment. Then the call is made, once.
func TestALeaderThatStallsMakesNoLateCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at   func(y *yard, c *call, when moment) bool
		lost bool // whether an attempt is spent because the other replica finds an intent
	}{
		"between the slot and the intent": {func(_ *yard, c *call, when moment) bool {
			return c.what == "ledger" && when == after && c.first == "ledger UPDATE repairs=1 slots=1 node-0 attempt 1"
		}, false},
		"between the intent and the look at the provider": {func(_ *yard, c *call, when moment) bool {
			return c.first == "node-0 PATCH Acting reboot:1" && when == after && c.answer.StatusCode == http.StatusOK // the write must have succeeded
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

				y.ended(0) // by the other replica
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

// TestACallIsNotMadeAfterTenSeconds stops a Drydock without leader election between its intent and
// its call, for longer than the call may wait. So it has lost no leadership, and only the age of
// its intent can forbid the call.
func TestACallIsNotMadeAfterTenSeconds(t *testing.T) {
	t.Parallel()
	for name, stall := range map[string]time.Duration{"too long": tooLate, "control: a moment": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, busy := stallsBeforeItsCall(t, stall)
			for i := 1; stall < tooLate && busy && i < 5; i++ { // then the stall was too long for a control, so begin again
				call, busy = stallsBeforeItsCall(t, stall)
			}
			// Whether the attempt was given back or counts as spent: the call of the suspended
			// process was not made.
			require.Equal(t, stall < tooLate, strings.HasSuffix(call, "-0-1"), "the call is %s", call)
		})
	}
}

// stallsBeforeItsCall returns the calls of a Drydock that stalls for that long before its call.
// busy is true if the machine was so busy that Drydock continued late, or could not read its Node
// in time.
func stallsBeforeItsCall(t *testing.T, stall time.Duration) (made string, busy bool) {
	t.Helper()
	const soon = 8 * time.Second // after the intent, with time left to make the call
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
		// Drydock asks the provider which machines exist, and then calls it.
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

// stopAt stops, once, the replica that makes this call, and returns that replica. A call to the
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
		return lab.Pass // the answer waits in the connection until the process continues
	})
	return stopped
}

// looked reports whether the call is the read at the provider right before the reboot. There is
// another one before the intent, so that a call that could only be refused costs no attempt.
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

// stop stops the process, and waits until none of its threads runs any more. The signal alone does
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
			// The format is "1234 (name) S ...". The state follows the name.
			_, state, _ := strings.Cut(string(stat), ") ")
			running = running || (err == nil && !strings.HasPrefix(state, "T"))
		}
	}
}

// awake continues a stopped replica.
func (y *yard) awake(r *replica) { y.signal(r, syscall.SIGCONT) }

// knows waits until the suspended process has found out its situation. It ends if another replica
// leads. If that replica has given the lead up meanwhile, it leads again. In both cases it has
// finished what it was doing before it was suspended.
func (y *yard) knows(r *replica, led int64) {
	y.t.Helper()
	require.Eventually(y.t, func() bool { return r.deaths.Load() > 0 || r.renewed.Load() > led }, lab.Patience, 20*time.Millisecond)
}

// TestASlotThatAFormerLeaderLeftIsFreed writes a slot into the ledger that the leader does not know
// of. A former leader may do that: it stalls, continues, reads the ledger again after a conflict,
// takes the slot, and is then refused by the Node. Nothing else makes the present leader write or
// read the ledger.
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
	y.fail(0) // the slot can be taken again
	y.kept()
}
