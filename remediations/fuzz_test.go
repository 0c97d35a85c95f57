package remediations_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// FuzzDecodeRecord checks that a record does not change when Drydock decodes and encodes it again.
// Otherwise a pass could change a record that it only meant to read.
func FuzzDecodeRecord(f *testing.F) {
	f.Add(goodRecord)
	f.Add(goodRecord + "}")
	f.Add(scene.SidecarRecord(PhaseVerifying).Encode())
	f.Add(scene.LocationRecord(PhaseVerifying).Encode())
	f.Add(`{"v":1,"hold":{"until":null}}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := DecodeRecord(text)
		if err != nil {
			return
		}
		again, err := DecodeRecord(r.Encode())
		require.NoError(t, err)
		require.Equal(t, r.Encode(), again.Encode())
		require.Equal(t, r.Clone().Encode(), r.Encode())
	})
}

// FuzzDecodeAlert checks that an alert does not change when Drydock decodes and encodes it again.
func FuzzDecodeAlert(f *testing.F) {
	f.Add(AlertPrefix+scene.FP, `{"v":1,"alertname":"A","policy":"p","status":"firing","startsAt":"2026-01-01T00:00:00Z","receivedAt":"2026-01-01T00:00:00Z","labels":{"node":"n1"}}`)
	f.Fuzz(func(t *testing.T, key, text string) {
		a, err := DecodeAlert(key, text)
		if err != nil {
			return
		}
		again, err := DecodeAlert(key, a.Encode())
		require.NoError(t, err)
		require.Equal(t, a.Encode(), again.Encode())
		require.True(t, a.Same(again))
	})
}

// FuzzDecide calls Decide for a Node with arbitrary annotations, when everything else allows a
// repair. Decide must not panic, and must return the same decision twice. It must not act against
// an annotation that a person wrote or that is unreadable.
func FuzzDecide(f *testing.F) {
	for _, g := range scene.GoldensIn(f, "../targets/node/testdata/decide") {
		text, err := os.ReadFile(g.Input)
		require.NoError(f, err)
		n := scene.Read(f, text).TheNode(f)
		f.Add(n.Annotations[NodeRepairKey], n.Annotations[AlertPrefix+scene.FP], n.Annotations[PauseKey], n.Annotations[ResetKey], n.Annotations[HistoryKey], n.Annotations[ApproveKey], n.Labels[ExcludeLabel] != "", int64(0))
	}
	f.Fuzz(func(t *testing.T, record, alert, pause, reset, history, approve string, exclude bool, seconds int64) {
		sc := &scene.Scene{}
		sc.Policy.Approval = approve != ""
		s := sc.State(t)
		for key, v := range map[string]string{NodeRepairKey: record, AlertPrefix + scene.FP: alert, PauseKey: pause, ResetKey: reset, HistoryKey: history, ApproveKey: approve} {
			delete(s.Node.Annotations, key)
			if v != "" {
				s.Node.Annotations[key] = v
			}
		}
		if exclude {
			s.Node.Labels[ExcludeLabel] = ""
		}
		s.Journal = ReadJournal(s.Node)
		now := scene.Noon.Add(time.Duration(seconds%(7*24*3600)) * time.Second)
		s.LookSince, s.Snapshot.AskedAt, s.Heartbeats.ReadAt = now, now, now
		for i, r := range s.Snapshot.Replicas {
			a := r.Alerts[scene.FP]
			a.UpdatedAt, a.EndsAt = now, now.Add(4*time.Minute)
			s.Snapshot.Replicas[i].Alerts[scene.FP] = a
		}
		d := node.Decide(s, now)
		require.Equal(t, d, node.Decide(s, now))
		if d.Verb != lifecycle.VerbIssue {
			return
		}
		require.False(t, exclude, "excluded")
		require.NoError(t, s.Journal.Malformed)
		if pause != "" {
			p, err := ParsePause(pause)
			require.NoError(t, err)
			require.False(t, p.Until.IsZero() || now.Before(p.Until), "paused")
		}
		if r := s.Journal.Record; sc.Policy.Approval && (r == nil || r.Intent == nil) {
			require.Equal(t, approve, d.Record.ID, "nobody approved this repair")
		}
		require.NotContains(t, scene.RecordIDs(s.Journal.Record), d.Record.Intent.ID, "no intent is issued twice")
		again, err := DecodeRecord(d.Record.Encode())
		require.NoError(t, err, "what Decide writes, Decide reads")
		require.Equal(t, PhaseActing, again.Phase)
	})
}
