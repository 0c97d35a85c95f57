package node_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestDecideAtTheLastMoment pins for each limit whether the exact limit counts as inside or
// outside.
func TestDecideAtTheLastMoment(t *testing.T) {
	unread := func(since time.Duration) func(*lifecycle.State) {
		return func(s *lifecycle.State) {
			s.Ledger, s.LedgerErr, s.LedgerLost = nil, errors.New("no answer"), scene.Noon.Add(-since)
		}
	}
	unlisted := func(since time.Duration) func(*lifecycle.State) {
		return func(s *lifecycle.State) {
			s.Heartbeats, s.LeasesErr, s.LeasesLost = nil, errors.New("no answer"), scene.Noon.Add(-since)
		}
	}
	for name, c := range map[string]struct {
		change func(*lifecycle.State)
		verb   lifecycle.Verb
		reason Reason
		ask    lifecycle.Ask
	}{
		"leases that are just fresh enough": {func(s *lifecycle.State) { s.Heartbeats.ReadAt = scene.Noon.Add(-LookFor) }, lifecycle.VerbIssue, "", lifecycle.Ask{}},
		"leases that are too old":           {func(s *lifecycle.State) { s.Heartbeats.ReadAt = scene.Noon.Add(-LookFor - 1) }, lifecycle.VerbLook, "", lifecycle.Ask{Heartbeats: true}},
		"a look that is just fresh enough":  {func(s *lifecycle.State) { s.LookSince = scene.Noon.Add(-LookFor) }, lifecycle.VerbIssue, "", lifecycle.Ask{}},
		"a look that is too old":            {func(s *lifecycle.State) { s.LookSince = scene.Noon.Add(-LookFor - 1) }, lifecycle.VerbLook, "", lifecycle.Ask{Alerts: true}},
		"a look older than maxStaleness": {func(s *lifecycle.State) {
			s.Config.MaxStaleness = 5 * time.Second
			s.LookSince = scene.Noon.Add(-5*time.Second - 1)
		}, lifecycle.VerbLook, "", lifecycle.Ask{Alerts: true}},
		"a look as old as maxStaleness": {func(s *lifecycle.State) {
			s.Config.MaxStaleness = 5 * time.Second
			s.LookSince = scene.Noon.Add(-5 * time.Second)
		}, lifecycle.VerbIssue, "", lifecycle.Ask{}},
		"a ledger lost for long enough": {unread(OutageFor), lifecycle.VerbHold, ReasonBlind, lifecycle.Ask{}},
		"a ledger lost a moment ago":    {unread(OutageFor - 1), lifecycle.VerbLook, "", lifecycle.Ask{}},
		"leases lost for long enough":   {unlisted(OutageFor), lifecycle.VerbHold, ReasonBlind, lifecycle.Ask{Heartbeats: true}},
		"leases lost a moment ago":      {unlisted(OutageFor - 1), lifecycle.VerbLook, "", lifecycle.Ask{Heartbeats: true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.Read(t, []byte("{}")).State(t)
			c.change(s)
			d := node.Decide(s, scene.Noon)
			require.Equal(t, c.verb, d.Verb, d.Message)
			require.Equal(t, c.reason, d.Reason)
			require.Equal(t, c.ask, d.Ask)
		})
	}
}

func TestAlertOfACauseIsThatAlert(t *testing.T) {
	s := &lifecycle.State{Journal: Journal{Alerts: []Alert{{Fingerprint: "a"}, {Fingerprint: "b"}}}}
	require.Equal(t, &s.Journal.Alerts[1], s.AlertBy("b"))
	require.Nil(t, s.AlertBy("c"))
}

// TestCancelIsRememberedOnItsAlert: the cancel is written on its alert once, before the history
// forgets the repair.
func TestCancelIsRememberedOnItsAlert(t *testing.T) {
	by := CancelledRepair{ID: "r1", At: scene.Noon}
	other := CancelledRepair{ID: "r0", At: scene.Noon}
	history := []Entry{{ID: "r1", Cause: scene.FP, By: ByPerson, Ended: scene.Noon}}
	for name, c := range map[string]struct {
		knows   *CancelledRepair
		history []Entry
		prune   []string
		writes  bool
	}{
		"it is new":                       {history: history, writes: true},
		"an earlier one was remembered":   {knows: &other, history: history, writes: true},
		"it was remembered":               {knows: &by, history: history},
		"no person cancelled anything":    {},
		"the alert is removed altogether": {history: history, prune: []string{(&Alert{Fingerprint: scene.FP}).Key()}},
	} {
		s := &lifecycle.State{Journal: Journal{Alerts: []Alert{{Fingerprint: scene.FP, Cancelled: c.knows}}, History: c.history}}
		d := lifecycle.Decision{NodeWrite: lifecycle.NodeWrite{Prune: c.prune}}
		node.Remember(s, &d)
		require.Equal(t, c.writes, len(d.Alerts) == 1, name)
		if c.writes {
			require.Equal(t, &by, d.Alerts[0].Cancelled, name)
		}
	}
}

// TestTheLedgerGetsTheEndsAndCancelsThatItLacks: these are the last end of each policy, and
// cancels. Expired entries are removed.
func TestTheLedgerGetsTheEndsAndCancelsThatItLacks(t *testing.T) {
	reboot := Attempts{{Name: "reboot", Number: 1}}
	ended := []Entry{{ID: "r2", Policy: "p", Ended: scene.Noon, Steps: reboot}, {ID: "r1", Policy: "p", Ended: scene.Noon.Add(-time.Minute), Steps: reboot}, {ID: "r0", Policy: "unknown", Ended: scene.Noon, Steps: reboot}}
	by := &CancelledRepair{ID: "r1", At: scene.Noon}
	alert := Alert{Fingerprint: scene.FP, Policy: "p", Cancelled: by}
	knows := func(l *ledger.Ledger, n *corev1.Node, c *Config) {
		l.Ended(c, n, ledger.CancelOf(alert, *by, scene.Noon), scene.Noon)
	}
	for name, c := range map[string]struct {
		journal Journal
		knows   func(*ledger.Ledger, *corev1.Node, *Config)
		prune   []string
		verb    lifecycle.Verb
		ends    []string
		over    []string
	}{
		"the last end of the policy":            {journal: Journal{History: ended}, ends: []string{"r2"}},
		"a reset writes nothing":                {journal: Journal{History: ended}, verb: lifecycle.VerbReset},
		"a cancel on the alert":                 {journal: Journal{Alerts: []Alert{alert}}, ends: []string{"r1"}},
		"a cancel that the ledger has":          {journal: Journal{Alerts: []Alert{alert}}, knows: knows},
		"a cancel that the Node has lost":       {journal: Journal{Alerts: []Alert{{Fingerprint: scene.FP, Policy: "p"}}}, knows: knows},
		"the alert has ended":                   {journal: Journal{Alerts: []Alert{alert}}, knows: knows, prune: []string{alert.Key()}, over: []string{scene.FP}},
		"a repair of the alert has acted since": {journal: Journal{Alerts: []Alert{{Fingerprint: scene.FP, Policy: "p"}}, History: []Entry{{ID: "r3", Policy: "unknown", Cause: scene.FP, Ended: scene.Noon.Add(time.Second), Steps: reboot}}}, knows: knows, over: []string{scene.FP}},
	} {
		config, n, l := &Config{Policies: []*Policy{{Name: "p", Cooldown: time.Hour}}}, scene.Bare("n1"), &ledger.Ledger{}
		if c.knows != nil {
			c.knows(l, n, config)
		}
		d := lifecycle.Decision{Verb: c.verb, NodeWrite: lifecycle.NodeWrite{Prune: c.prune}}
		node.RememberEnds(&lifecycle.State{Config: config, Node: n, Ledger: l, Journal: c.journal}, &d, scene.Noon)
		var ends []string
		for _, e := range d.Ends {
			ends = append(ends, e.Repair)
		}
		require.Equal(t, c.ends, ends, name)
		require.Equal(t, c.over, d.CancelsOver, name)
	}
}
