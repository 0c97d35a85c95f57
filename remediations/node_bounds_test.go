package remediations_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/scene"
)

// TestDecideAtTheLastMoment pins on which side of each limit the limit itself is.
func TestDecideAtTheLastMoment(t *testing.T) {
	unread := func(since time.Duration) func(*State) {
		return func(s *State) {
			s.Ledger, s.LedgerErr, s.LedgerLost = nil, errors.New("no answer"), scene.Noon.Add(-since)
		}
	}
	unlisted := func(since time.Duration) func(*State) {
		return func(s *State) {
			s.Heartbeats, s.LeasesErr, s.LeasesLost = nil, errors.New("no answer"), scene.Noon.Add(-since)
		}
	}
	for name, c := range map[string]struct {
		change func(*State)
		verb   Verb
		reason Reason
		ask    Ask
	}{
		"leases that are just fresh enough": {func(s *State) { s.Heartbeats.ReadAt = scene.Noon.Add(-LookFor) }, Issue, "", Ask{}},
		"leases that are too old":           {func(s *State) { s.Heartbeats.ReadAt = scene.Noon.Add(-LookFor - 1) }, Look, "", Ask{Heartbeats: true}},
		"a look that is just fresh enough":  {func(s *State) { s.LookSince = scene.Noon.Add(-LookFor) }, Issue, "", Ask{}},
		"a look that is too old":            {func(s *State) { s.LookSince = scene.Noon.Add(-LookFor - 1) }, Look, "", Ask{Alerts: true}},
		"a ledger lost for long enough":     {unread(OutageFor), Keep, Blind, Ask{}},
		"a ledger lost a moment ago":        {unread(OutageFor - 1), Look, "", Ask{}},
		"leases lost for long enough":       {unlisted(OutageFor), Keep, Blind, Ask{Heartbeats: true}},
		"leases lost a moment ago":          {unlisted(OutageFor - 1), Look, "", Ask{Heartbeats: true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.Read(t, []byte("{}")).State(t)
			c.change(s)
			d := Decide(s, scene.Noon)
			require.Equal(t, c.verb, d.Verb, d.Message)
			require.Equal(t, c.reason, d.Reason)
			require.Equal(t, c.ask, d.Ask)
		})
	}
}

func TestAlertOfACauseIsThatAlert(t *testing.T) {
	s := &State{Journal: Journal{Alerts: []Alert{{Fingerprint: "a"}, {Fingerprint: "b"}}}}
	require.Equal(t, &s.Journal.Alerts[1], s.AlertBy("b"))
	require.Nil(t, s.AlertBy("c"))
}
