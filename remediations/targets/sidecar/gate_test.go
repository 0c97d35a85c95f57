package sidecar_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/sidecar"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestAGateThatAStartClosedIsOpenedAfterItsAlertLapsed: an alert's source sets the start of the
// alert, and may pause. The observations of the gate decide.
func TestAGateThatAStartClosedIsOpenedAfterItsAlertLapsed(t *testing.T) {
	start := scene.Noon.Add(-30 * time.Minute)
	look := func(minutes int, health sidecar.Health) sidecar.Observation {
		return sidecar.Observation{At: start.Add(time.Duration(minutes) * time.Minute), Pod: Pod{Namespace: "sei", Name: "a-0", UID: "pod1"}, Node: "n1", StartedAt: start, Health: health}
	}
	type looks map[int]sidecar.Health
	const closed, open, unreachable = sidecar.HealthNotReady, sidecar.HealthReady, sidecar.HealthUnreachable
	for name, tc := range map[string]struct {
		looks  looks
		change func(s *sidecar.Observation)
		reason Reason // empty: the gate is opened
	}{
		"closed at every look":                      {looks: looks{1: closed, 12: closed, 23: closed}},
		"one look in between had no answer":         {looks: looks{1: closed, 12: closed, 20: unreachable, 26: closed}},
		"nobody looked":                             {reason: ReasonSidecarUnknown},
		"the first look was late":                   {looks: looks{16: closed, 23: closed}, reason: ReasonSidecarUnknown},
		"nobody looked for more than 15 minutes":    {looks: looks{1: closed, 13: closed}, reason: ReasonSidecarUnknown},
		"open at one look":                          {looks: looks{1: closed, 12: open, 23: closed}, reason: ReasonSidecarHeld},
		"the looks were at another pod":             {looks: looks{1: closed, 12: closed, 23: closed}, change: func(g *sidecar.Observation) { g.Pod.UID = "pod0" }, reason: ReasonSidecarUnknown},
		"the looks were at the container before":    {looks: looks{1: closed, 12: closed, 23: closed}, change: func(g *sidecar.Observation) { g.StartedAt = start.Add(-time.Hour) }, reason: ReasonSidecarUnknown},
		"the container before was open":             {looks: looks{23: open}, change: func(g *sidecar.Observation) { g.StartedAt = start.Add(-time.Hour) }, reason: ReasonSidecarUnknown},
		"the owner saw that it was open":            {looks: looks{29: closed}, change: func(g *sidecar.Observation) { g.OpenAt = start.Add(20 * time.Minute) }, reason: ReasonSidecarHeld},
		"the owner has seen it closed all the time": {looks: looks{29: closed}, change: func(g *sidecar.Observation) { g.ClosedSince = start.Add(time.Minute) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.ReadSidecar(t, `alerts: [{started: 2m}]`).SidecarState(t)
			var before *sidecar.Observation
			for minute := range 30 {
				health, looked := tc.looks[minute]
				if !looked {
					continue
				}
				g := look(minute, health)
				if tc.change != nil {
					tc.change(&g)
				}
				if g.Follow(before); health != unreachable {
					before = &g
				}
			}
			now := look(30, closed)
			now.Follow(before)
			s.Seen = &now
			d := sidecar.Decide(s, scene.Noon)
			require.Equal(t, tc.reason, d.Reason, d.Message)
			require.Equal(t, tc.reason == "", d.Verb == lifecycle.VerbIssue, d.Message)
		})
	}
}
