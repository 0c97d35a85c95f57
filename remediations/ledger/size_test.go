package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

// maxConfigMap is the largest size of a ConfigMap's values that the API server accepts.
const maxConfigMap = 1 << 20

func bytesOf(data map[string]string) (sum int) {
	for _, value := range data {
		sum += len(value)
	}
	return sum
}

// fleet returns a ledger of machines that were repaired once each, one second apart. The first of
// them, up to the number cured, have a cure.
func fleet(machines, cured int) *ledger.Ledger {
	l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}
	for i := range machines {
		machine, repair, at := fmt.Sprintf("civo://6b6c7c0e-5d5c-4e0b-9f7e-%012d", i), fmt.Sprintf("r%011d", i), scene.Noon.Add(time.Duration(i)*time.Second)
		l.Repairs[machine] = []ledger.Begun{{Repair: repair, At: at}}
		if i < cured {
			reboot := StepRef{Name: "reboot", Attempt: 1}
			l.Cured(machine, &Entry{ID: repair, Policy: "node-not-ready", Outcome: OutcomeRecovered, Ended: at, Steps: Attempts{reboot.Issued()}, Last: &reboot}, nil)
		}
	}
	return l
}

// TestLedgerFitsInAConfigMap: only the oldest cures are removed.
func TestLedgerFitsInAConfigMap(t *testing.T) {
	const machines = 6000
	l := fleet(machines, machines)
	l.Slots = []ledger.Slot{{Node: "n1", Repair: "r1", Since: scene.Noon}}
	l.Orphans = []ledger.Orphan{{Node: "n2", UID: "uid-2", Record: Record{ID: "r2"}}}
	l.Wide, l.Moves = []ledger.Begun{{Repair: "r3", At: scene.Noon}}, map[string][]ledger.Begun{"eu": {{Repair: "r4", At: scene.Noon}}}
	before := l.Encode()
	require.Greater(t, bytesOf(before), maxConfigMap, "the API server would refuse it")

	data, forgotten := l.Fit()
	require.LessOrEqual(t, bytesOf(data), ledger.MostBytes)
	require.Less(t, ledger.MostBytes, maxConfigMap)
	require.Equal(t, l.Encode(), data, "what is in memory is what is in store")
	require.Positive(t, forgotten)
	require.Len(t, l.Cures, machines-forgotten)
	for machine, repairs := range l.Repairs {
		require.Equal(t, repairs[0].At.Before(scene.Noon.Add(time.Duration(forgotten)*time.Second)), l.Cures[machine] == nil, "the oldest are forgotten, and only they")
	}
	for key, value := range before {
		if !strings.Contains(value, `"steps"`) {
			require.Equal(t, value, data[key])
		}
	}

	again, forgotten := l.Fit()
	require.Zero(t, forgotten, "there is room for the next writes")
	require.Equal(t, data, again)
}

// TestEndsAreForgottenAfterCures: the oldest ends are removed first, and only as many as necessary.
func TestEndsAreForgottenAfterCures(t *testing.T) {
	l := fleet(8000, 10)
	l.Ends = map[string][]ledger.End{}
	for i := range 2000 {
		l.Ends[fmt.Sprintf("civo://6b6c7c0e-5d5c-4e0b-9f7e-%012d", i)] = []ledger.End{{Repair: "r1", Policy: "node-not-ready", At: scene.Noon.Add(time.Duration(i) * time.Second)}}
	}
	data, forgotten := l.Fit()
	require.LessOrEqual(t, bytesOf(data), ledger.MostBytes)
	require.Empty(t, l.Cures)
	require.Len(t, l.Ends, 2000-(forgotten-10))
	require.NotEmpty(t, l.Ends)
	require.NotContains(t, l.Ends, "civo://6b6c7c0e-5d5c-4e0b-9f7e-000000000000")
	require.Contains(t, l.Ends, "civo://6b6c7c0e-5d5c-4e0b-9f7e-000000001999")
	require.Len(t, l.Repairs, 8000)
}

// TestLedgerThatFitsForgetsNothing is the control for the tests above.
func TestLedgerThatFitsForgetsNothing(t *testing.T) {
	l := fleet(3000, 3000)
	before := l.Encode()
	data, forgotten := l.Fit()
	require.Zero(t, forgotten)
	require.Equal(t, before, data)
}

// TestSlotsAndRepairsAreNeverForgotten: if they alone are too long, the API server refuses the
// write, and no repair begins.
func TestSlotsAndRepairsAreNeverForgotten(t *testing.T) {
	l := fleet(12_000, 100)
	data, forgotten := l.Fit()
	require.Equal(t, 100, forgotten)
	require.Greater(t, bytesOf(data), maxConfigMap)
	require.Len(t, l.Repairs, 12_000)
}

// TestSizesThatTheDocumentationPromises: docs/reference/performance.md uses these sizes.
func TestSizesThatTheDocumentationPromises(t *testing.T) {
	const machines = 1000
	each := func(l *ledger.Ledger) int {
		return (bytesOf(l.Encode()) - bytesOf((&ledger.Ledger{}).Encode())) / machines
	}
	repairs, cured := each(fleet(machines, 0)), each(fleet(machines, machines))
	slots, breakGlass := &ledger.Ledger{}, &ledger.Ledger{}
	breakGlass.Status.BreakGlass = map[string]ledger.BreakGlass{}
	for i := range machines {
		node := fmt.Sprintf("k3s-production-3f2a-node-pool-7c1b-%05d", i)
		slots.Slots = append(slots.Slots, ledger.Slot{
			Node: node, Policy: "node-not-ready", UID: "2d9b7f4e-2f1a-4c55-8a6b-000000000000", ProviderID: "civo://6b6c7c0e-5d5c-4e0b-9f7e-000000000000", Zone: "lon1",
			Repair: fmt.Sprintf("r%011d", i), Attempt: fmt.Sprintf("r%011d-0-1", i), Since: scene.Noon,
		})
		breakGlass.Status.BreakGlass[node] = ledger.BreakGlass{Since: scene.Noon, Why: strings.Repeat("a", 80)}
	}
	ended := &ledger.Ledger{}
	for i := range machines {
		n := scene.Bare("n1")
		n.Spec.ProviderID = fmt.Sprintf("civo://6b6c7c0e-5d5c-4e0b-9f7e-%012d", i)
		ended.Ended(&Config{Policies: []*Policy{{Cooldown: time.Hour}}}, n, ledger.End{Repair: fmt.Sprintf("r%011d", i), Policy: "node-not-ready", At: scene.Noon, Outcome: OutcomeRecovered, Restarted: true}, scene.Noon)
	}
	t.Logf("a machine's repair %d, with its cure %d, its end %d, a slot %d, a break-glass %d", repairs, cured, each(ended), each(slots), each(breakGlass))
	require.InDelta(t, 180, each(ended), 20)
	require.InDelta(t, 100, repairs, 20)
	require.InDelta(t, 300, cured, 20)
	require.InDelta(t, 280, each(slots), 20)
	require.InDelta(t, 165, each(breakGlass), 20)
	require.LessOrEqual(t, ledger.BreakGlassMost*each(breakGlass), maxConfigMap/4, "break-glass on all nodes leaves room for repairs")
}
