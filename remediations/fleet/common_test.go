package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/testing/scene"
)

var three = CommonCause{Nodes: 3, Within: 5 * time.Minute}

func withCommonCause(limit CommonCause) *Config {
	c := scene.LimitsAlone()
	c.Limits.CommonCause = limit
	return c
}

func policyOf(name string, of ...signs.Sign) *Policy {
	return &Policy{Name: name, Witness: &signs.Witness{Signs: of}}
}

// commonOf returns the fault that the first node shares with others. The nodes' alerts began that
// many minutes after noon.
func commonOf(p *Policy, minutes ...int) *fleet.Common {
	onsets := fleet.Onsets{}
	nodes := scene.Herd(len(minutes), 0)
	for i, n := range nodes {
		onsets.Add(p, n.Name, scene.Noon.Add(time.Duration(minutes[i])*time.Minute))
	}
	f := scene.FleetOf(withCommonCause(three), nodes, nil, scene.Noon)
	f.Begin(onsets)
	return f.Common(p.Name, "n000")
}

// TestManyAtOnceWithOneFaultIsOneCause: the alerts must begin close enough together, and the
// breaker must not count their nodes.
func TestManyAtOnceWithOneFaultIsOneCause(t *testing.T) {
	disk := signs.Sign{Kind: signs.Condition, Name: "DiskPressure", Status: "True"}
	for name, c := range map[string]struct {
		sign    signs.Sign
		minutes []int
		count   int
	}{
		"three in a minute":                 {disk, []int{0, 1, 1}, 3},
		"three in five minutes":             {disk, []int{0, 2, 5}, 3},
		"three in six minutes":              {disk, []int{0, 3, 6}, 0},
		"two":                               {disk, []int{0, 0}, 0},
		"three, and this one is the last":   {disk, []int{5, 0, 1}, 3},
		"three others an hour ago":          {disk, []int{60, 0, 1, 2}, 0},
		"ten, one after the other":          {disk, []int{0, 2, 4, 6, 8, 10, 12, 14, 16, 18}, 10},
		"three GPU nodes":                   {signs.Sign{Kind: signs.MissingGPUs}, []int{0, 0, 0}, 3},
		"three pods of a DaemonSet":         {signs.Sign{Kind: signs.DaemonSetPod, Name: "a/b"}, []int{0, 0, 0}, 3},
		"three that are not Ready":          {signs.Sign{Kind: signs.NotReady}, []int{0, 0, 0}, 0},
		"three whose lease is stale":        {signs.Sign{Kind: signs.StaleLease}, []int{0, 0, 0}, 0},
		"three whose instance does not run": {signs.Sign{Kind: signs.NotRunning}, []int{0, 0, 0}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := commonOf(policyOf("p", c.sign), c.minutes...)
			if c.count == 0 {
				require.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			require.Equal(t, c.count, got.Count)
			require.Empty(t, got.Tried)
		})
	}
	require.Nil(t, commonOf(&Policy{Name: "p", Witness: &signs.Witness{None: true}}, 0, 0, 0), "nobody says what fault it is")
}

// TestWhoIsTriedForACommonCause: it is the node that the policy repairs, unless something holds its
// next step, or the node that the policy has repaired without a cure. Another policy's repair shows
// nothing about the fault.
func TestWhoIsTriedForACommonCause(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		phase  Phase
		hold   Reason
		tried  string
		failed bool
	}{
		"under repair":                     {"p", PhaseVerifying, "", "n001", false},
		"between two attempts":             {"p", PhasePending, "", "n001", false},
		"between two attempts, and paused": {"p", PhasePending, ReasonPaused, "", false},
		"out of steps":                     {"p", PhaseExhausted, "", "n001", true},
		"under repair by another policy":   {"q", PhaseVerifying, "", "", false},
		"out of steps of another policy":   {"q", PhaseExhausted, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			p, nodes, onsets := policyOf("p", signs.Sign{Kind: signs.Condition, Name: "X", Status: "True"}), scene.Herd(3, 0), fleet.Onsets{}
			for _, n := range nodes {
				onsets.Add(p, n.Name, scene.Noon)
			}
			scene.InPhase(scene.InFlight(nodes[1], "reboot"), c.phase)
			r := ReadJournal(nodes[1]).Record
			if r.Policy = c.policy; c.hold != "" {
				r.Hold = &Hold{Reason: c.hold, Message: "m", Since: scene.Noon}
			}
			nodes[1].Annotations[NodeRepairKey] = r.Encode()
			f := scene.FleetOf(withCommonCause(three), nodes, nil, scene.Noon)
			f.Begin(onsets)
			got := f.Common("p", "n000")
			require.Equal(t, c.tried, got.Tried)
			require.Equal(t, c.failed, got.Failed)
			f.Occupy(scene.LimitsAlone(), nodes[2], "", false)
			if c.tried == "" {
				require.Equal(t, "n002", f.Common("p", "n000").Tried, "one that this pass has begun with")
			}
		})
	}
}

// TestACommonCauseIsFoundWhereverItLies compares with the definition: enough alerts, also the
// node's own, began within limits.commonCause.within of each other.
func TestACommonCauseIsFoundWhereverItLies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := CommonCause{Nodes: rapid.IntRange(2, 5).Draw(t, "nodes"), Within: time.Duration(rapid.IntRange(1, 5).Draw(t, "within")) * time.Minute}
		minutes := rapid.SliceOfN(rapid.IntRange(0, 30), 1, 20).Draw(t, "minutes")
		p, nodes, onsets := policyOf("p", signs.Sign{Kind: signs.MissingGPUs}), scene.Herd(len(minutes), 0), fleet.Onsets{}
		at := func(i int) time.Time { return scene.Noon.Add(time.Duration(minutes[i]) * time.Minute) }
		for i, n := range nodes {
			onsets.Add(p, n.Name, at(i))
		}
		f := scene.FleetOf(withCommonCause(limit), nodes, nil, scene.Noon)
		f.Begin(onsets)
		for i := range minutes {
			want := false
			for from := range minutes { // the window that begins with this alert
				count, own := 0, false
				for j := range minutes {
					if d := at(j).Sub(at(from)); d >= 0 && d <= limit.Within {
						count++
						own = own || j == i
					}
				}
				want = want || own && count >= limit.Nodes
			}
			got := f.Common("p", fmt.Sprintf("n%03d", i))
			if (got != nil) != want {
				t.Fatalf("node %d of %v with %v: %v, want %v", i, minutes, limit, got, want)
			}
		}
	})
}
