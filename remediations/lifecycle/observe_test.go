package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// observedNode returns a node's record in mode observe: the reboot would have been issued that long
// ago. more has the rest of the scene.
func observedNode(t *testing.T, ago, more string) *lifecycle.State {
	t.Helper()
	return scene.Read(t, fmt.Appendf(nil, `
record: {v: 1, id: r1, policy: node-not-ready, cause: {alert: %s}, phase: Pending, step: {index: 0, name: reboot, attempt: 1},
  began: "<now-20m>", since: "<now-20m>", deadline: "<now+23h>", hold: {reason: Observing, message: "would reboot n1 now", since: "<now-%s>"}}
%s`, scene.FP, ago, more)).State(t)
}

// TestWhenAnObservationEnds: an observation ends when its policy is off or its alert has ended. It
// does not end on data that is missing or too old.
func TestWhenAnObservationEnds(t *testing.T) {
	const gone = "\nword: {replicas: [{alert: absent}, {alert: absent}]}"
	for name, c := range map[string]struct {
		more string
		verb lifecycle.Verb
		why  string
	}{
		"the alert fires": {"", lifecycle.VerbHold, ""},
		"the answers of the Alertmanagers are too old":    {"\nword: {asked: never}", lifecycle.VerbLook, ""},
		"the alert was posted as resolved just now":       {"\nalerts: [{status: resolved, received: 1s}]" + gone, lifecycle.VerbEnd, "the alert ended"},
		"the alert was posted just now":                   {"\nalerts: [{received: 1s}]" + gone, lifecycle.VerbHold, ""},
		"the alert is gone, and was posted a while ago":   {"\nalerts: [{received: 5m}]" + gone, lifecycle.VerbEnd, "the alert ended"},
		"the Node lost its alert, which still fires":      {"\nalerts: []", lifecycle.VerbHold, ""},
		"the Node lost its alert, which has ended":        {"\nalerts: []" + gone, lifecycle.VerbEnd, scene.FP + "; the alert ended"},
		"the Node lost its alert, and Prometheus stopped": {"\nalerts: []\nword: {watchdogMisses: 3, replicas: [{alert: absent}, {alert: absent}]}", lifecycle.VerbHold, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := node.Decide(observedNode(t, "1m", "policy: {mode: observe}"+c.more), scene.Noon)
			require.Equal(t, c.verb, d.Verb, d.Message)
			switch d.Verb {
			case lifecycle.VerbHold:
				require.Equal(t, ReasonObserving, d.Reason)
			case lifecycle.VerbLook:
				require.True(t, d.Ask.Alerts)
			default:
				require.Equal(t, OutcomeObserved, d.Ended.Outcome)
				require.Contains(t, d.Message, c.why)
			}
		})
	}
	d := node.Decide(observedNode(t, "1m", `policy: {mode: "off"}`), scene.Noon)
	require.Equal(t, lifecycle.VerbEnd, d.Verb, d.Message)
	require.Contains(t, d.Message, "no longer configured, or off")
}

// TestWhatAnObservationSaysAboutTheNode: only a node that is Ready, and whose alert has ended
// according to fresh answers, counts as well.
func TestWhatAnObservationSaysAboutTheNode(t *testing.T) {
	const ended = "\nnode: {ready: \"True\"}\nalerts: [{status: resolved}]\nword: {replicas: [{alert: absent}, {alert: absent}]"
	for name, c := range map[string]struct {
		ago, more         string
		well, unnecessary bool
		says              string
	}{
		"well before the wait ended":           {"1m", "policy: {mode: observe}" + ended + "}", true, true, "would have been unnecessary"},
		"well when the wait had ended":         {"15m", "policy: {mode: observe}" + ended + "}", true, false, "when the step's wait had ended"},
		"Ready, and the alert fires":           {"15m", "policy: {mode: observe, plan: [reboot 2]}\nnode: {ready: \"True\"}", false, false, "the alert still fires after 15m; if the step had not cured it, reboot:2 would come next"},
		"Ready, and it was the plan's last":    {"15m", "policy: {mode: observe, plan: [reboot]}\nnode: {ready: \"True\"}", false, false, "if the step had not cured it, a person would have to look"},
		"off, and answers of before":           {"1m", "policy: {mode: \"off\"}" + ended + ", asked: never}", false, false, "the alert had been firing for 10m; policy node-not-ready is no longer configured, or off"},
		"off, and no Alertmanager was asked":   {"1m", "policy: {mode: \"off\"}\nnode: {ready: \"True\"}\nword: {never: true}", false, false, "the alert had been firing for 10m; policy node-not-ready is no longer configured, or off"},
		"off, and the answers say it is ended": {"1m", "policy: {mode: \"off\"}" + ended + "}", true, true, "would have been unnecessary; policy node-not-ready is no longer configured, or off"},
	} {
		t.Run(name, func(t *testing.T) {
			d := node.Decide(observedNode(t, c.ago, c.more), scene.Noon)
			require.NotNil(t, d.Ended, d.Message)
			require.Equal(t, c.well, !d.Ended.Would.WellAt.IsZero(), d.Message)
			require.Equal(t, c.unnecessary, d.Ended.Would.Unnecessary(), d.Message)
			require.Contains(t, d.Message, c.says)
		})
	}
}

// TestWhichRepairEndsAnObservation: the Node has room for one record. So an alert of an enforcing
// policy ends the observation if its repair can begin or if a person must approve it.
func TestWhichRepairEndsAnObservation(t *testing.T) {
	const (
		others = "\nothers: [{name: disk-pressure, mode: enforce, plan: [reboot]}]"
		fires  = "\nalerts: [{}, {fingerprint: a000000000000001, policy: disk-pressure, active: true}]"
		over   = "\nalerts: [{}, {fingerprint: a000000000000001, policy: disk-pressure, status: resolved}]"
		away   = "\nledger: {unreadable: timeout}"
	)
	for name, c := range map[string]struct {
		more string
		verb lifecycle.Verb
	}{
		"it can begin":                                      {"policy: {mode: observe}" + others + fires, lifecycle.VerbEnd},
		"it needs an approval":                              {"policy: {mode: observe, approval: true}" + others + fires, lifecycle.VerbEnd},
		"the node is paused":                                {"policy: {mode: observe}\nnode: {annotations: {drydock.dev/pause: \"true\"}}" + others + fires, lifecycle.VerbHold},
		"the ledger must be read first":                     {"policy: {mode: observe}" + others + fires + away, lifecycle.VerbLook},
		"the alert has ended, and the ledger is unreadable": {"policy: {mode: observe}" + others + over + away, lifecycle.VerbHold},
	} {
		t.Run(name, func(t *testing.T) {
			d := node.Decide(observedNode(t, "1m", c.more), scene.Noon)
			require.Equal(t, c.verb, d.Verb, d.Message)
			switch d.Verb {
			case lifecycle.VerbEnd:
				require.Contains(t, d.Message, "the observation ended for a repair by policy disk-pressure")
			case lifecycle.VerbHold:
				require.Equal(t, ReasonObserving, d.Reason, d.Message)
			default:
			}
		})
	}
}

// TestAnAlertIsReportedOnceInModeObserve, until it has ended and fires again. An entry of the
// history counts only for its own alert and policy, and only with the step that it reports.
func TestAnAlertIsReportedOnceInModeObserve(t *testing.T) {
	ago := func(d time.Duration) time.Time { return scene.Noon.Add(-d) }
	const silenced = "\nword: {replicas: [{alert: silenced}, {alert: silenced}]}"
	for name, c := range map[string]struct {
		more   string
		change func(*Entry)
		reason Reason // of the hold; empty: the alert is not reported again
	}{
		"it fires since before the report":         {"", nil, ""},
		"the report is of another alert":           {"", func(e *Entry) { e.Cause = "00000000000000aa" }, ReasonObserving},
		"the report is of another policy":          {"", func(e *Entry) { e.Policy = "disk-pressure" }, ReasonObserving},
		"the repair did more than observe":         {"", func(e *Entry) { e.Outcome = OutcomeCancelled }, ReasonObserving},
		"an entry without its step":                {"", func(e *Entry) { e.Would = nil }, ReasonObserving},
		"the node was well, and it fires again":    {"", func(e *Entry) { e.Would.WellAt = e.Ended }, ReasonObserving},
		"silenced, and no later start is known":    {silenced, nil, ""},
		"silenced, and the Node has a later start": {"\nalerts: [{started: 1m}]" + silenced, nil, ReasonSilenced},
		"only the Node has a later start":          {"\nalerts: [{started: 1m}]", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.Read(t, []byte("policy: {mode: observe, cooldown: 0s}\nlimits: {repairsPerNode: 3}"+c.more)).State(t)
			e := Entry{
				ID: "r0", Policy: "node-not-ready", Outcome: OutcomeObserved, Cause: scene.FP, Began: ago(30 * time.Minute), Ended: ago(5 * time.Minute),
				Would: &Would{Step: Attempt{Name: "reboot", Number: 1}, At: ago(8 * time.Minute), Until: ago(5 * time.Minute), IllSince: ago(30 * time.Minute)},
			}
			if c.change != nil {
				c.change(&e)
			}
			s.Journal.History = []Entry{e}
			d := node.Decide(s, scene.Noon)
			if c.reason == "" {
				require.Equal(t, lifecycle.VerbRest, d.Verb, d.Message)
				require.Contains(t, d.Message, "repair r0 would have issued reboot:1")
				return
			}
			require.Equal(t, lifecycle.VerbHold, d.Verb, d.Message)
			require.Equal(t, c.reason, d.Reason, d.Message)
		})
	}
}

// TestAnObservedLocationIsWatched: Drydock observes the location every 15 seconds while it only
// reports a move. If another node leads the location, the alert belongs to that node.
func TestAnObservedLocationIsWatched(t *testing.T) {
	for name, c := range map[string]struct {
		ago, sight string
		want       func(t *testing.T, d lifecycle.Decision)
	}{
		"observed just now": {"1m", "{age: 5s}", func(t *testing.T, d lifecycle.Decision) {
			require.Equal(t, lifecycle.VerbHold, d.Verb, d.Message)
			require.False(t, d.Ask.Observation)
			require.Equal(t, scene.Noon.Add(10*time.Second), d.Recheck)
		}},
		"observed too long ago": {"1m", "{age: 15s}", func(t *testing.T, d lifecycle.Decision) {
			require.Equal(t, lifecycle.VerbHold, d.Verb, d.Message)
			require.True(t, d.Ask.Observation)
		}},
		"led by another node": {"1m", "{leader: n3}", func(t *testing.T, d lifecycle.Decision) {
			require.Equal(t, lifecycle.VerbEnd, d.Verb, d.Message)
			require.Contains(t, d.Message, "location eu is led by n3")
			require.Equal(t, []string{AlertPrefix + scene.FP}, d.Prune)
		}},
		"the wait has ended": {"3m", "{}", func(t *testing.T, d lifecycle.Decision) {
			require.Equal(t, lifecycle.VerbEnd, d.Verb, d.Message)
			require.Contains(t, d.Message, "the alert still fires")
			require.True(t, d.Ended.Would.WellAt.IsZero())
			require.Empty(t, d.Prune)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.ReadLocation(t, fmt.Sprintf(`
policy: {mode: observe}
leader: {v: 1, id: r1, policy: mesh-leader-degraded, cause: {alert: %s}, location: eu, phase: Pending, step: {index: 0, name: promote-leader, attempt: 1},
  began: "<now-20m>", since: "<now-20m>", deadline: "<now+23h>", hold: {reason: Observing, message: "would move", since: "<now-%s>"}}
sight: %s`, scene.FP, c.ago, c.sight)).LocationState(t)
			c.want(t, location.Decide(s, scene.Noon))
		})
	}
}
