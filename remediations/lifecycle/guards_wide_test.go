package lifecycle_test

import (
	"testing"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestOneBadNodeNeverChangesTheWholeCluster: with any configuration, a step that changes the whole
// cluster needs enough nodes with the policy's alert. Also, no other such step may be under way or
// have been issued within the last hour.
func TestOneBadNodeNeverChangesTheWholeCluster(t *testing.T) {
	whole, issued := t, 0
	rapid.Check(t, func(t *rapid.T) {
		sc := scene.Read(whole, []byte(`
policy: {plan: [rollout-restart=kube-system/cni, reboot]}
limits: {concurrent: 9}
provided: [rollout-restart, reboot]
survey: {step: "rollout-restart kube-system/cni"}
`))
		sc.Word.Sick = rapid.IntRange(0, 9).Draw(t, "sick")
		if rapid.IntRange(0, 2).Draw(t, "under way") == 0 {
			sc.Ledger.Slots = []ledger.Slot{{Node: "n9", Repair: "r9", Attempt: "r9-0-1", Wide: true}}
		}
		lately := rapid.SampledFrom([]time.Duration{0, time.Minute, 59 * time.Minute, time.Hour}).Draw(t, "lately")
		if lately > 0 {
			sc.Ledger.Wide = []ledger.Begun{{Repair: "r8", At: scene.Noon.Add(-lately)}}
		}
		s := sc.State(whole)
		s.Config.ClusterWide = ClusterWide{MinNodes: rapid.IntRange(0, 5).Draw(t, "minNodes"), MinShare: Quantity{Value: rapid.IntRange(0, 60).Draw(t, "minShare"), Percent: rapid.Bool().Draw(t, "percent")}}
		d := node.Decide(s, scene.Noon)
		if d.Verb != lifecycle.VerbIssue {
			return
		}
		issued++
		require.Equal(t, "rollout-restart", d.Record.Step.Name, "what is passed over is on record first")
		sick := sc.Word.Sick + 1
		require.GreaterOrEqual(t, sick, max(2, s.Config.ClusterWide.MinNodes))
		if q := s.Config.ClusterWide.MinShare; q.Percent {
			require.GreaterOrEqual(t, sick*10, q.Value)
		} else {
			require.GreaterOrEqual(t, sick, q.Value)
		}
		require.Empty(t, sc.Ledger.Slots)
		require.False(t, lately > 0 && lately < time.Hour)
	})
	if !testing.Short() { // a fifth of the cases may not show it
		require.Positive(t, issued)
	}
}

// TestAlertsThatDoNotCountForTheWholeCluster: alerts do not count if their node does not exist, if
// they are silenced, or if another policy takes them.
func TestAlertsThatDoNotCountForTheWholeCluster(t *testing.T) {
	s := scene.Read(t, []byte(`
policy: {plan: [rollout-restart=kube-system/cni]}
provided: [rollout-restart]
`)).State(t)
	alert := func(node string, change func(*alerts.Alert)) {
		a := alerts.Alert{Labels: map[string]string{"alertname": "NodeNotReady", "remediation": "node-not-ready", "node": node}, StartsAt: scene.Noon, Active: true}
		change(&a)
		for _, r := range s.Snapshot.Replicas {
			r.Alerts[Fingerprint(a.Labels)] = a
		}
	}
	disk := *s.Config.Policies[0]
	matches, err := labels.NewMatcher(labels.MatchEqual, "remediation", "disk-full")
	require.NoError(t, err)
	disk.Name, disk.Match = "disk-full", labels.Matchers{matches}
	s.Config.Policies = append(s.Config.Policies, &disk)
	c := &lifecycle.Candidate{State: s, Now: scene.Noon, Policy: s.Config.Policies[0], Step: StepRef{Name: "rollout-restart", Attempt: 1}}
	require.Equal(t, 1, c.Sick())
	alert("no-such-node", func(*alerts.Alert) {})
	alert("n2", func(a *alerts.Alert) { a.Active, a.SilencedBy = false, []string{"s1"} })
	alert("n3", func(a *alerts.Alert) { a.Labels["remediation"] = "disk-full" })
	alert("n5", func(a *alerts.Alert) { a.Labels["remediation"] = "of no policy" })
	alert("n1", func(a *alerts.Alert) { a.Labels["instance"] = "another alert of the same node" })
	require.Equal(t, 1, c.Sick())
	alert("n4", func(*alerts.Alert) {})
	require.Equal(t, 2, c.Sick())
}

// TestWhatHoldsAStepForTheWholeCluster: while enough nodes have the alert, only another repair's
// change of the cluster holds the step, and only until it has ended an hour ago.
func TestWhatHoldsAStepForTheWholeCluster(t *testing.T) {
	changed := func(repair string, ago time.Duration) []ledger.Begun {
		return []ledger.Begun{{Repair: repair, At: scene.Noon.Add(-ago)}}
	}
	for name, c := range map[string]struct {
		slots []ledger.Slot
		wide  []ledger.Begun
		held  bool
	}{
		"no other change":                      {},
		"another repair changes the cluster":   {slots: []ledger.Slot{{Node: "n9", Repair: "r9", Wide: true}}, held: true},
		"another repair changes only its node": {slots: []ledger.Slot{{Node: "n9", Repair: "r9"}}},
		"the slot is this repair's own":        {slots: []ledger.Slot{{Node: "n1", Repair: "r1", Wide: true}}},
		"its own slot, and another one":        {slots: []ledger.Slot{{Node: "n1", Repair: "r1", Wide: true}, {Node: "n9", Repair: "r9", Wide: true}}, held: true},
		"a change less than an hour ago":       {wide: changed("r9", time.Hour-1), held: true},
		"a change an hour ago":                 {wide: changed("r9", time.Hour)},
		"a change by this repair":              {wide: changed("r1", time.Minute)},
	} {
		sc := scene.Read(t, []byte("{policy: {plan: [rollout-restart=kube-system/cni]}, provided: [rollout-restart], word: {sick: 4}}"))
		sc.Ledger.Slots, sc.Ledger.Wide = c.slots, c.wide
		s := sc.State(t)
		asked := &lifecycle.Candidate{State: s, Now: scene.Noon, Policy: s.Config.Policies[0], Step: StepRef{Name: "rollout-restart", Attempt: 1}, Own: "r1"}
		_, f := asked.HeldBy([]Reason{ReasonClusterWide})
		require.Equal(t, c.held, f != nil, name)
	}
}
