package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/sidecar"
	"drydock.dev/drydock/remediations/testing/scene"
)

// waitingLocation returns location eu with a record that has done nothing yet.
func waitingLocation(t *testing.T, more string) *location.State {
	t.Helper()
	return scene.ReadLocation(t, `
leader: {v: 1, id: r1, policy: mesh-leader-degraded, cause: {alert: 8b2d1f0c3a4e5d67}, location: eu, phase: Pending, step: {index: 0, name: promote-leader, attempt: 1},
  began: "<now-5m>", since: "<now-5m>", deadline: "<now+23h>", hold: {reason: Paused, message: "paused", since: "<now-5m>"}}
`+more).LocationState(t)
}

// TestARepairContinuesBesideAnUnreadableRecord: only a target without a repair waits for the person
// who resets the node.
func TestARepairContinuesBesideAnUnreadableRecord(t *testing.T) {
	unreadable := errors.New("a record cannot be read")
	l := movedLocation(t, func(s *location.State, _ *Record) { s.Journal.Malformed = unreadable })
	require.Equal(t, lifecycle.VerbWait, location.Decide(l, scene.Noon).Verb)
	l.Record = nil
	require.Equal(t, lifecycle.VerbRest, location.Decide(l, scene.Noon).Verb)

	s := scene.ReadSidecar(t, "{}").SidecarState(t)
	s.Journal.Malformed, s.Record = unreadable, scene.SidecarRecord(PhaseVerifying)
	require.Equal(t, lifecycle.VerbWait, sidecar.Decide(s, scene.Noon).Verb)
	s.Record = nil
	require.Equal(t, lifecycle.VerbRest, sidecar.Decide(s, scene.Noon).Verb)
}

// TestTheLeasesAreReadForTimesFromTheFuture of a location's record, and only for those: the leases
// show whose clock is wrong.
func TestTheLeasesAreReadForTimesFromTheFuture(t *testing.T) {
	for name, c := range map[string]struct {
		since time.Duration
		read  bool
		ask   bool
	}{
		"right times, and no leases": {-5 * time.Minute, false, false},
		"from the future":            {2 * time.Hour, false, true},
		"the leases were just read":  {2 * time.Hour, true, false},
	} {
		s := waitingLocation(t, `node: {labels: {drydock.dev/exclude: ""}}`)
		s.Record.Since = scene.Noon.Add(c.since)
		if s.Heartbeats.Stale = s.Heartbeats.Nodes / 2; !c.read { // half of them: neither clock is confirmed
			s.Heartbeats = nil
		}
		d := location.Decide(s, scene.Noon)
		require.Equal(t, ReasonExcluded, d.Reason, "%s: %s", name, d.Message)
		require.Equal(t, c.ask, d.Ask.Heartbeats, name)
	}
}

// TestTheTimesOfAnExhaustedRepairStay: the record waits for a person, and no time ends that.
func TestTheTimesOfAnExhaustedRepairStay(t *testing.T) {
	s := movedLocation(t, func(_ *location.State, r *Record) {
		r.Phase, r.Deadline, r.Since = PhaseExhausted, time.Time{}, scene.Noon.Add(time.Hour)
	})
	d := location.Decide(s, scene.Noon)
	require.Equal(t, lifecycle.VerbRest, d.Verb, d.Message)
	require.Nil(t, d.Record)
}

// TestWhichEndedAlertsAreRemoved: Drydock removes an ended alert from the Node once, except the
// alert of the present repair. It removes none on answers that are too old, nor before an
// observation.
func TestWhichEndedAlertsAreRemoved(t *testing.T) {
	const (
		other   = "00000000000000aa"
		ended   = "alerts: [{}, {fingerprint: \"" + other + "\", status: resolved}]\n"
		waiting = `leader: {v: 1, id: r1, policy: mesh-leader-degraded, cause: {alert: "00000000000000aa"}, location: eu, phase: Pending, step: {index: 0, name: promote-leader, attempt: 1},
  began: "<now-5m>", since: "<now-5m>", deadline: "<now+23h>", hold: {reason: Paused, message: "paused", since: "<now-5m>"}}`
		moved = `leader: {v: 1, id: r1, policy: mesh-leader-degraded, cause: {alert: 8b2d1f0c3a4e5d67}, location: eu, phase: Verifying, step: {index: 0, name: promote-leader, attempt: 1},
  began: "<now-90s>", since: "<now-80s>", deadline: "<now+38s>", done: ["promote-leader:1"], moves: [{location: eu, from: n1, to: n2, before: {n1: "", n2: null}}],
  intent: {id: r1-0-1, at: "<now-82s>", uid: uid-n1, successor: n2, outcome: accepted}, undo: [{kind: leader, key: n2, at: "<now-82s>"}]}
sight: {leader: n2}`
	)
	for name, c := range map[string]struct {
		text string
		verb lifecycle.Verb
		want []string
	}{
		"beside the repair of another alert":      {ended + moved, lifecycle.VerbWait, []string{other}},
		"the answers are too old":                 {ended + moved + "\nword: {age: 20s, asked: 10s}", lifecycle.VerbWait, nil},
		"the location is observed first":          {ended + "sight: {never: true}", lifecycle.VerbLook, nil},
		"the repair begins for another alert":     {ended + waiting, lifecycle.VerbIssue, []string{other}},
		"another node leads, and takes the other": {ended + "sight: {leader: n3}", lifecycle.VerbRest, []string{scene.FP, other}},
		"the alert of the repair itself":          {"alerts: [{status: resolved}]\nword: {replicas: [{alert: absent}, {alert: absent}]}\n" + moved, lifecycle.VerbWait, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := location.Decide(scene.ReadLocation(t, c.text).LocationState(t), scene.Noon)
			require.Equal(t, c.verb, d.Verb, d.Message)
			var want []string
			for _, fingerprint := range c.want {
				want = append(want, AlertPrefix+fingerprint)
			}
			require.ElementsMatch(t, want, d.Prune)
		})
	}
}

// TestAWaitingRecordOfALocationIsOfItsAlertPolicyAndPlan: if one of them is another now, a record
// with another id takes its place. So an old approval does not count.
func TestAWaitingRecordOfALocationIsOfItsAlertPolicyAndPlan(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *Policy, r *Record)
		same   bool
	}{
		"nothing changed":  {func(*Policy, *Record) {}, true},
		"another alert's":  {func(_ *Policy, r *Record) { r.Cause.Alert = "00000000000000aa" }, false},
		"another policy's": {func(_ *Policy, r *Record) { r.Policy = "another" }, false},
		"another plan": {func(p *Policy, r *Record) {
			p.Approval, r.Plan = true, "an older one"
		}, false},
	} {
		s := waitingLocation(t, "")
		c.change(s.Config.Policies[0], s.Record)
		d := location.Decide(s, scene.Noon)
		require.NotNil(t, d.Record, "%s: %s", name, d.Message)
		require.Equal(t, c.same, d.Record.ID == "r1", "%s: %s", name, d.Message)
	}
	s := waitingLocation(t, "policy: {approval: true}")
	s.Record.Plan = s.Config.Policies[0].Approved(s.Node)
	d := location.Decide(s, scene.Noon)
	require.Equal(t, ReasonAwaitingApproval, d.Reason, d.Message)
	require.Equal(t, "r1", d.Record.ID)
}

// TestTheLeasesAreReadAgainWhereTheyHoldTheRepair: a hold for another reason does not end when the
// leases are fresh again.
func TestTheLeasesAreReadAgainWhereTheyHoldTheRepair(t *testing.T) {
	for text, c := range map[string]struct {
		reason Reason
		ask    bool
	}{
		`{heartbeats: {stale: 7, read: 15s}}`:                                                           {ReasonBlind, true},
		`{heartbeats: {stale: 7, read: 5s}}`:                                                            {ReasonBlind, false},
		`{heartbeats: {stale: 7, read: 15s}, node: {annotations: {drydock.dev/pause: "true"}}}`:         {ReasonPaused, false},
		`{heartbeats: {read: 15s}, word: {watchdogMisses: 3}}`:                                          {ReasonBlind, false},
		`{heartbeats: {read: 15s}, node: {annotations: {drydock.dev/pause: "true"}}}`:                   {ReasonPaused, false},
		`{heartbeats: {stale: 7, read: 15s}, word: {replicas: [{alert: silenced}, {alert: silenced}]}}`: {ReasonBlind, true},
	} {
		d := location.Decide(scene.ReadLocation(t, text).LocationState(t), scene.Noon)
		require.Equal(t, c.reason, d.Reason, "%s: %s", text, d.Message)
		require.Equal(t, c.ask, d.Ask.Heartbeats, text)
	}
}

// TestWhenAnAlertHasEnded: an alert that no Alertmanager has must also be posted as resolved.
// Otherwise its last post must be older than UnconfirmedFor, because a post may arrive before the
// poll that confirms it. A time ahead by more than that is wrong.
func TestWhenAnAlertHasEnded(t *testing.T) {
	s := scene.Read(t, []byte("word: {replicas: [{alert: absent}, {alert: absent}]}")).State(t)
	for name, c := range map[string]struct {
		status   string
		received time.Duration
		over     bool
	}{
		"resolved just now":          {StatusResolved, 0, true},
		"posted just now":            {StatusFiring, 0, false},
		"posted a minute ago":        {StatusFiring, -UnconfirmedFor, false},
		"posted over a minute ago":   {StatusFiring, -UnconfirmedFor - 1, true},
		"posted in a minute":         {StatusFiring, UnconfirmedFor, false},
		"posted in over a minute":    {StatusFiring, UnconfirmedFor + 1, true},
		"resolved, by a wrong clock": {StatusResolved, time.Hour, true},
	} {
		a := &Alert{Fingerprint: scene.FP, Status: c.status, ReceivedAt: scene.Noon.Add(c.received)}
		require.Equal(t, c.over, s.Over(a, scene.Noon), name)
	}
	active := scene.Read(t, []byte("{}")).State(t)
	require.False(t, active.Over(&Alert{Fingerprint: scene.FP, Status: StatusResolved}, scene.Noon), "an Alertmanager has it")
}

// TestWhatTheLedgerForgetsBeforeTheNodeIsWritten: each of a person's resets would have no effect
// otherwise.
func TestWhatTheLedgerForgetsBeforeTheNodeIsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		write   lifecycle.LedgerWrite
		forgets bool
	}{
		"nothing":          {lifecycle.LedgerWrite{}, false},
		"ends to remember": {lifecycle.LedgerWrite{Ends: []ledger.End{{Repair: "r1"}}, CancelsOver: []string{scene.FP}}, false},
		"a stopped policy": {lifecycle.LedgerWrite{Allow: []string{"p"}}, true},
		"a cancel":         {lifecycle.LedgerWrite{Uncancel: []string{scene.FP}}, true},
		"the GPUs it had":  {lifecycle.LedgerWrite{FewerGPUs: true}, true},
	} {
		require.Equal(t, c.forgets, c.write.Forgets(), name)
	}
}
