package apiserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestTheJournalRemembersSinceWhenAnAlertIsKnown: a rescue on record knows of its own alert since
// it began, even if this process received the alert later.
func TestTheJournalRemembersSinceWhenAnAlertIsKnown(t *testing.T) {
	began := scene.Noon.Add(-time.Hour)
	for name, c := range map[string]struct {
		cause          string
		received, want time.Time
	}{
		"its alert, received again after a restart": {scene.FP, scene.Noon, began},
		"its alert, received before it began":       {scene.FP, began.Add(-time.Minute), began.Add(-time.Minute)},
		"another alert":                             {"00000000000000aa", scene.Noon, scene.Noon},
	} {
		s := readRescue(t, []byte("{}")).state(t)
		s.Journal.Rescue = &Rescue{ID: "r1", Cause: remediations.Cause{Alert: c.cause}, Began: began}
		a := remediations.Alert{Fingerprint: scene.FP, ReceivedAt: c.received}
		require.Equal(t, c.want, s.candidate(s.Config.Policy("apiserver-down"), &a, false, scene.Noon).Alert.ReceivedAt, name)
		require.Equal(t, c.received, a.ReceivedAt, "the alert itself stays as it is")
	}
}

// TestARescueThatHasRestartedCountsItsAttempts: the next restart is a further attempt of the same
// rescue. One that has restarted nothing has no attempt yet.
func TestARescueThatHasRestartedCountsItsAttempts(t *testing.T) {
	s := readRescue(t, []byte("{}")).state(t)
	s.Journal.Rescue = &Rescue{ID: "r1", Hosts: []HostTry{{Host: "cp-1"}, {Host: "cp-2"}}}
	a := remediations.Alert{Fingerprint: scene.FP}
	p := s.Config.Policy("apiserver-down")
	acted := s.candidate(p, &a, true, scene.Noon)
	require.Equal(t, 3, acted.Step.Attempt)
	require.True(t, acted.Acted())
	first := s.candidate(p, &a, false, scene.Noon)
	require.Equal(t, 1, first.Step.Attempt)
	require.False(t, first.Acted())
}

// TestWhenAnAlertAboutTheAPIServersHasEnded: no Alertmanager has it, and it was reported resolved,
// or nothing was received about it for UnconfirmedFor.
func TestWhenAnAlertAboutTheAPIServersHasEnded(t *testing.T) {
	for name, c := range map[string]struct {
		gone   bool
		status string
		age    time.Duration
		over   bool
	}{
		"resolved":                       {true, remediations.StatusResolved, 0, true},
		"resolved, and one has it still": {false, remediations.StatusResolved, remediations.UnconfirmedFor, false},
		"firing, and none has it yet":    {true, remediations.StatusFiring, remediations.UnconfirmedFor - 1, false},
		"firing, and none has it":        {true, remediations.StatusFiring, remediations.UnconfirmedFor, true},
	} {
		s := readRescue(t, []byte("{}")).state(t)
		a := remediations.Alert{Fingerprint: scene.FP, Status: c.status, ReceivedAt: scene.Noon.Add(-c.age)}
		of := s.candidate(s.Config.Policy("apiserver-down"), &a, false, scene.Noon)
		of.Verdict.Gone = c.gone
		require.Equal(t, c.over, of.over(&a), name)
	}
}

// TestOnlyTheRestartsOfItsOwnPolicyBeginTheCooldown: the last of them counts, whatever another
// policy has done since.
func TestOnlyTheRestartsOfItsOwnPolicyBeginTheCooldown(t *testing.T) {
	ended := func(policy string, age time.Duration, hosts ...HostTry) EndedRescue {
		e := EndedRescue{Hosts: hosts}
		e.ID, e.Policy, e.Ended = policy+age.String(), policy, scene.Noon.Add(-age)
		return e
	}
	const own, cooldown = "apiserver-down", 5 * time.Minute
	host := HostTry{Host: "cp-1"}
	for name, c := range map[string]struct {
		ended []EndedRescue
		held  time.Duration
	}{
		"its own":                     {[]EndedRescue{ended(own, time.Minute, host)}, 4 * time.Minute},
		"its own, long ago":           {[]EndedRescue{ended(own, cooldown, host)}, 0},
		"another policy's":            {[]EndedRescue{ended("mine", time.Minute, host)}, 0},
		"its own before another's":    {[]EndedRescue{ended("mine", time.Minute, host), ended(own, 2*time.Minute, host)}, 3 * time.Minute},
		"its own restarted nothing":   {[]EndedRescue{ended(own, time.Minute)}, 0},
		"its own before one without":  {[]EndedRescue{ended(own, time.Minute), ended(own, 2*time.Minute, host)}, 3 * time.Minute},
		"its own long before another": {[]EndedRescue{ended("mine", time.Minute, host), ended(own, time.Hour, host)}, 0},
	} {
		s := readRescue(t, []byte("{}")).state(t)
		s.Journal.Ended = c.ended
		f := s.candidate(s.Config.Policy(own), &remediations.Alert{Fingerprint: scene.FP}, false, scene.Noon).cooldown()
		require.Equal(t, c.held > 0, f != nil, name)
		if f != nil {
			require.Equal(t, scene.Noon.Add(c.held), f.Until, name)
		}
	}
}
