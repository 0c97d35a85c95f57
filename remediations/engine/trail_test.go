package engine

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestALogFollowsARepair: each line about a repair has its ID, node, policy and the fingerprint of
// its alert. Each line from the call on has the intent, under the same keys. The line of the
// alert's write on the Node has the same fingerprint.
func TestALogFollowsARepair(t *testing.T) {
	c := modelConfig()
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		lines := logOf(w)
		w.start()
		w.pass(16 * time.Second)
		cure(t, w, 1)
		ended := at(w, func() remediations.Entry { return w.ended[0] })
		var told []string
		adopted := false
		for _, l := range lines() {
			adopted = adopted || l["msg"] == "an alert was found by the poll" && l["fingerprint"] == fingerprintOf("n0") && l["node"] == "n0"
			what, _ := l["reason"].(string)
			if what == "" {
				what, _ = l["msg"].(string)
			}
			if !slices.Contains([]string{"RepairPending", "RepairStarted", "RepairStepIssued", "making the call", "the provider answered", "RepairVerifying", "RepairRecovered"}, what) {
				continue
			}
			told = append(told, what)
			require.Equal(t, "n0", l["node"], "%v", l)
			require.Equal(t, ended.ID, l["repair"], "%v", l)
			require.Equal(t, c.Policies[0].Name, l["policy"], "%v", l)
			require.Equal(t, fingerprintOf("n0"), l["fingerprint"], "%v", l)
			if slices.Contains([]string{"RepairStepIssued", "making the call", "the provider answered", "RepairVerifying"}, what) {
				require.Equal(t, ended.ID+"-0-1", l["intent"], "%v", l)
			}
		}
		require.True(t, adopted, "the alert's write has its line")
		for _, must := range []string{"RepairStarted", "RepairStepIssued", "making the call", "the provider answered", "RepairVerifying", "RepairRecovered"} {
			require.Contains(t, told, must)
		}
	})
}

// TestALogHasTheEndOfAnObservedRepair: the line of its end has the same keys, and no intent,
// because nothing was issued.
func TestALogHasTheEndOfAnObservedRepair(t *testing.T) {
	c := modelConfig()
	c.Policies[0].Mode = remediations.ModeObserve
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		lines := logOf(w)
		w.start()
		w.do(func() { w.ail("n0", 1) })
		w.pass(20 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeObserved}, w.outcomes())
		ended := at(w, func() remediations.Entry { return w.ended[0] })
		var observed []map[string]any
		for _, l := range lines() {
			if l["reason"] == "RepairObserved" {
				observed = append(observed, l)
			}
		}
		require.Len(t, observed, 1)
		l := observed[0]
		require.Equal(t, "n0", l["node"])
		require.Equal(t, ended.ID, l["repair"])
		require.Equal(t, c.Policies[0].Name, l["policy"])
		require.Equal(t, fingerprintOf("n0"), l["fingerprint"])
		require.NotContains(t, l, "intent")
		require.Contains(t, l["msg"], "reboot:1 would have been issued at")
	})
}

// logOf keeps the lines of the log, and returns a function that returns the lines so far.
func logOf(w *world) func() []map[string]any {
	var mu sync.Mutex
	var lines []map[string]any
	w.log = funcr.NewJSON(func(line string) {
		var fields map[string]any
		_ = json.Unmarshal([]byte(line), &fields)
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, fields)
	}, funcr.Options{})
	return func() []map[string]any {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}
