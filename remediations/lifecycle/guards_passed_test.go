package lifecycle

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/marks"
	"drydock.dev/drydock/remediations/signs"
)

// aCandidate returns a repair of n1 by policy p that no guard holds.
func aCandidate() *Candidate {
	n := &corev1.Node{}
	n.Name, n.Labels, n.Annotations = "n1", map[string]string{}, map[string]string{}
	n.CreationTimestamp.Time = callTime.Add(-48 * time.Hour)
	conf := &Config{Limits: Limits{
		Concurrent: Quantity{Value: 2}, ConcurrentPerZone: Quantity{Value: 9}, ConcurrentPerPool: Quantity{Value: 9}, ZoneLabel: "zone",
		Unhealthy: Quantity{Value: 20, Percent: true}, RepairsPerNode: 3, RepairsWindow: 24 * time.Hour,
	}}
	l := &ledger.Ledger{}
	s := &State{
		Config: conf, Node: n, Ledger: l, Snapshot: &alerts.Snapshot{Replicas: []alerts.Replica{{}, {Err: errors.New("down")}}},
		Heartbeats: &signs.Heartbeats{Nodes: 10, Stale: 1},
	}
	s.Fleet = fleet.New(conf, []*corev1.Node{n}, l, func(string) bool { return false }, callTime)
	p := &Policy{Name: "p", Mode: ModeEnforce, Witness: &signs.Witness{None: true}, Cooldown: time.Hour, Plan: []Step{{Name: "reboot", Attempts: 1}}}
	return &Candidate{State: s, Now: callTime, Policy: p, Step: StepRef{Name: "reboot", Attempt: 1}, Alert: &Alert{Policy: "p", StartsAt: callTime.Add(-time.Minute)}, Own: "r1"}
}

// TestWhatAPassedGuardCompared: the message of a guard that does not hold shows the values that it
// compared.
func TestWhatAPassedGuardCompared(t *testing.T) {
	set := func(key, value string) func(c *Candidate) {
		return func(c *Candidate) { c.Node.Annotations[key] = value }
	}
	asIs := func(*Candidate) {}
	asked := func(c *Candidate) { c.Request = "remediation/reboot" }
	controlPlane := func(c *Candidate) { c.Node.Labels["node-role.kubernetes.io/control-plane"] = "" }
	wouldBe := func(c *Candidate) {
		other := &corev1.Node{}
		other.Name = "n2"
		c.Fleet.Occupy(c.Config, other, "", true)
	}
	for name, c := range map[string]struct {
		says   func(*Candidate) string
		change func(c *Candidate)
		want   string
	}{
		"no pause":               {notPaused, asIs, "the node is not paused"},
		"a pause that ended":     {notPaused, set(PauseKey, "2026-03-04T11:00:00Z"), "the pause ended at 2026-03-04T11:00:00Z"},
		"no mark":                {staying, asIs, "the node has none of the"},
		"a mark that is too old": {staying, set("weave.works/kured-reboot-in-progress", "2026-03-04T10:00:00Z"), "the node's marks are too old to hold the repair: annotation weave.works/kured-reboot-in-progress"},
		"not cordoned":           {notCordoned, asIs, "the node is not cordoned"},
		"cordoned":               {notCordoned, func(c *Candidate) { c.Node.Spec.Unschedulable = true }, "policy p repairs cordoned nodes"},
		"cordoned by the repair": {notCordoned, func(c *Candidate) {
			c.Node.Spec.Unschedulable, c.Journal.Record = true, &Record{Undo: []Undo{{Kind: UndoCordon}}}
		}, "this repair cordoned the node"},
		"an alert":                    {confirmed, asIs, "Alertmanager has the alert"},
		"an alert with its start":     {confirmed, func(c *Candidate) { c.Verdict.StartsAt = callTime }, "firing since 2026-03-04T12:00:00Z"},
		"an alert that is gone":       {confirmed, func(c *Candidate) { c.Verdict.Gone = true }, "no Alertmanager has the alert"},
		"no alert is needed":          {confirmed, asked, "so it needs no alert"},
		"one of two answered":         {answered, asIs, "1 of 2 Alertmanagers answered"},
		"two of three answered":       {answered, func(c *Candidate) { c.Snapshot.Replicas = append(c.Snapshot.Replicas, alerts.Replica{}) }, "2 of 3 Alertmanagers answered"},
		"the Watchdog is there":       {answered, func(c *Candidate) { c.Config.Watchdog = true }, "and the Watchdog alert is firing"},
		"all leases":                  {leasesFresh, asIs, "1 of 10 node leases are stale; 60% would be too many"},
		"a sample of leases":          {leasesFresh, func(c *Candidate) { c.Heartbeats.Fleet = 500 }, "in a random sample of 500 nodes"},
		"an alert that is not over":   {notResolved, asIs, "the alert has not ended"},
		"no alert that could be over": {notResolved, asked, "so the end of an alert does not end it"},
		"no witness":                  {witnessed, asIs, "policy p acts on the alert alone"},
		"a witness": {witnessed, func(c *Candidate) {
			c.Policy.Witness = &signs.Witness{Signs: []signs.Sign{{Kind: signs.NotReady}}}
			c.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		}, "Ready is False"},
		"no witness is needed": {witnessed, asked, "so no witness is needed"},
		"an alert's age": {alertAge, func(c *Candidate) {
			c.Verdict.StartsAt, c.Alert.ReceivedAt = callTime.Add(-time.Minute), callTime.Add(-time.Minute)
		}, "the alert has been firing since 2026-03-04T11:59:00Z"},
		"no alert has to last": {alertAge, asked, "so it does not wait for an alert"},
		"the fleet":            {fleetHealth, asIs, "of 1 nodes are unhealthy, limits.unhealthy is 20%"},
		"the zone": {fleetHealth, func(c *Candidate) {
			c.Node.Labels["zone"] = "a"
			c.Fleet = fleet.New(c.Config, []*corev1.Node{c.Node}, c.Ledger, func(string) bool { return false }, callTime)
		}, "; in zone a "},
		"a step for many nodes": {fleetHealth, func(c *Candidate) { c.Step.Name = "apply-cni" }, "the step is for faults that many nodes have"},
		"no windows":            {insideWindow, asIs, "no windows are configured"},
		"an open window":        {insideWindow, func(c *Candidate) { c.Config.Windows = []Window{{}} }, "one of the configured windows is open"},
		"no repair before":      {cooled, asIs, "policy p has not repaired the node before"},
		"a repair before": {cooled, func(c *Candidate) {
			c.Journal.History = []Entry{{ID: "r0", Policy: "p", Steps: Attempts{{Name: "reboot", Number: 1}}, Ended: callTime.Add(-2 * time.Hour)}}
		}, "the last repair by policy p ended at 2026-03-04T10:00:00Z (2h ago)"},
		"a repair that has begun":  {cooled, func(c *Candidate) { c.Repair = "r1" }, "this repair has begun already"},
		"no control plane":         {controlPlaneFree, asIs, "the node is not a control-plane node"},
		"the control plane":        {controlPlaneFree, controlPlane, "etcd needs"},
		"a step for one node":      {wideEnough, asIs, "the step changes only one node"},
		"a step for all nodes":     {wideEnough, func(c *Candidate) { c.Step.Name = "apply-cni" }, "0 of 1 nodes have a confirmed alert of policy p"},
		"below the limit":          {belowLimit, asIs, "repairs under way in the cluster: 0 of at most 2"},
		"beside a would-be repair": {belowLimit, wouldBe, "repairs under way in the cluster: 0 of at most 2"},
		"both would be repairs":    {belowLimit, func(c *Candidate) { wouldBe(c); c.Policy.Mode = ModeObserve }, "1 of at most 2"},
		"no approval":              {approved, asIs, "policy p needs no approval"},
		"approved":                 {approved, func(c *Candidate) { c.Policy.Approval = true }, "a person approved the repair"},
		"approved before it began": {approved, func(c *Candidate) { c.Policy.Approval, c.Repair = true, "r1" }, "this repair has begun already"},
	} {
		t.Run(name, func(t *testing.T) {
			candidate := aCandidate()
			c.change(candidate)
			require.Contains(t, c.says(candidate), c.want)
		})
	}
	require.NotContains(t, answered(aCandidate()), "Watchdog")
	require.NotContains(t, confirmed(aCandidate()), "since")
	require.NotContains(t, leasesFresh(aCandidate()), "sample")
	require.NotContains(t, fleetHealth(aCandidate()), "zone")
}

// TestAMomentHasItsAge: a time in a message has its age, unless it is in the future.
func TestAMomentHasItsAge(t *testing.T) {
	require.Equal(t, "2026-03-04T12:00:00Z (0s ago)", moment(callTime, callTime))
	require.Equal(t, "2026-03-04T12:00:00Z (1m ago)", moment(callTime, callTime.Add(time.Minute)))
	require.Equal(t, "2026-03-04T12:00:00Z", moment(callTime, callTime.Add(-1)))
}

// TestWhatMustBeReadOfAWitness: if one sign is Ill, no other sign has to be read.
func TestWhatMustBeReadOfAWitness(t *testing.T) {
	c := aCandidate()
	c.Policy.Witness = &signs.Witness{Signs: []signs.Sign{{Kind: signs.NotReady}, {Kind: signs.StaleLease}}}
	require.Equal(t, []string{"the lease of the node"}, c.unread())
	c.Read = map[signs.Sign]signs.Testimony{{Kind: signs.StaleLease}: {Answer: signs.Well, At: callTime}}
	require.Empty(t, c.unread(), "the lease was read")
	c.Read = nil
	c.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	require.Empty(t, c.unread(), "the node is not Ready")
	c.Policy.Witness = &signs.Witness{Signs: []signs.Sign{{Kind: signs.NotReady}}}
	c.Node.Status.Conditions[0].Status = corev1.ConditionTrue
	require.Empty(t, c.unread(), "the Node shows all signs")
}

// TestWhetherTheLeasesConfirmThisClock: this clock is right if most leases that were read just now
// are fresh.
func TestWhetherTheLeasesConfirmThisClock(t *testing.T) {
	for name, c := range map[string]struct {
		beats    *signs.Heartbeats
		yes, ask bool
	}{
		"not read":          {nil, false, true},
		"most are fresh":    {&signs.Heartbeats{ReadAt: callTime.Add(-LookFor), Nodes: 10, Stale: 1}, true, false},
		"read too long ago": {&signs.Heartbeats{ReadAt: callTime.Add(-LookFor - 1), Nodes: 10}, false, true},
		"most are stale":    {&signs.Heartbeats{ReadAt: callTime, Nodes: 10, Stale: 9}, false, false},
	} {
		yes, ask := (&State{Heartbeats: c.beats}).Trusts(callTime)
		require.Equal(t, c.yes, yes, name)
		require.Equal(t, c.ask, ask, name)
	}
	far, near := &Record{Intent: &Intent{At: callTime.Add(99 * time.Hour)}}, &Record{Intent: &Intent{At: callTime}}
	agree := &State{Heartbeats: &signs.Heartbeats{ReadAt: callTime, Nodes: 10}}
	require.True(t, agree.NeverIssued(far, callTime))
	require.False(t, agree.NeverIssued(near, callTime))
	require.False(t, (&State{}).NeverIssued(far, callTime), "no lease says whose clock is wrong")
}

// TestSinceWhenAnAlertFires: an alert counts from when Drydock first saw it, or from a later start
// that is not in the future.
func TestSinceWhenAnAlertFires(t *testing.T) {
	at := func(minutes int) time.Time { return callTime.Add(time.Duration(minutes) * time.Minute) }
	for name, c := range map[string]struct {
		alert            bool
		starts, received int
		want             int
	}{
		"it started before":      {true, -9, -5, -5},
		"it started again since": {true, -3, -5, -3},
		"it started now":         {true, 0, -5, 0},
		"it starts in a minute":  {true, 1, -5, -5},
		"its annotation is gone": {false, -9, 0, -9},
	} {
		candidate := aCandidate()
		candidate.Verdict.StartsAt, candidate.Alert.ReceivedAt = at(c.starts), at(c.received)
		if !c.alert {
			candidate.Alert = nil
		}
		require.Equal(t, at(c.want), candidate.firingSince(), name)
	}
}

// TestAShutdownTaintNamesDrydocksOwnRestart: the message about a shutdown taint names Drydock's own
// restart before it, which may have left the machine off.
func TestAShutdownTaintNamesDrydocksOwnRestart(t *testing.T) {
	const shutDown = "the node has the taint " + marks.ShutdownTaint
	issued := func(change func(r *Record)) *Record {
		r := &Record{ID: "r1", Step: StepRef{Name: "reboot", Attempt: 1}, Done: Attempts{{Name: "reboot", Number: 1}}, Intent: &Intent{ID: "r1-0-1"}}
		change(r)
		return r
	}
	for name, c := range map[string]struct {
		why  string
		r    *Record
		said bool
	}{
		"after its reboot":      {shutDown, issued(func(*Record) {}), true},
		"another mark":          {"the node has another taint", issued(func(*Record) {}), false},
		"no repair":             {shutDown, nil, false},
		"before its first step": {shutDown, issued(func(r *Record) { r.Intent = nil }), false},
		"the call was withheld": {shutDown, issued(func(r *Record) { r.Intent.ID = "" }), false},
		"after a drain":         {shutDown, issued(func(r *Record) { r.Step.Name, r.Done[0].Name = "drain", "drain" }), false},
	} {
		candidate := aCandidate()
		candidate.Journal.Record = c.r
		require.Equal(t, c.said, sinceOwnRestart(candidate, c.why) != "", name)
	}
}

// TestTheWindowsHoldAlsoWithoutAFleet: for the repair of API servers there is no fleet, and the
// configuration has the windows.
func TestTheWindowsHoldAlsoWithoutAFleet(t *testing.T) {
	for name, c := range map[string]struct {
		from, to int
		held     bool
	}{
		"closed at noon": {2, 4, true},
		"open at noon":   {11, 13, false},
	} {
		asked := aCandidate()
		asked.Config.Windows = []Window{{From: WallTime{Hour: c.from}, To: WallTime{Hour: c.to}, Location: time.UTC}}
		asked.Fleet = nil
		f := outsideWindow(asked)
		require.Equal(t, c.held, f != nil, name)
		if f != nil {
			require.Equal(t, callTime.Add(14*time.Hour), f.Until, name)
		}
	}
}

// ownPause is a kind of target that checks the guard Paused itself.
type ownPause struct {
	Base
	found *Finding
}

func (o *ownPause) Describe() Description { return Description{Own: []Reason{ReasonPaused}} }

func (o *ownPause) Guard(Reason, *Candidate) *Finding { return o.found }

// TestAKindOfTargetCanReplaceAGuard: a kind that replaces a guard decides alone. The general guard
// reads the Node, which such a target may not have.
func TestAKindOfTargetCanReplaceAGuard(t *testing.T) {
	for _, held := range []bool{true, false} {
		o := &ownPause{}
		c := aCandidate()
		c.target, c.is = o, o.Describe()
		if held {
			o.found = Because("a person paused it")
		} else {
			c.Node.Annotations[PauseKey] = "true"
		}
		require.Equal(t, held, c.isHeldBy(ReasonPaused))
	}
}
