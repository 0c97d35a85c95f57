package sidecar_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/targets/sidecar"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestLongestRecordOfASidecarIsReadable: the longest names, and foreign messages that JSON escapes
// to six times their length, fit in a record and in the room that is kept for it.
func TestLongestRecordOfASidecarIsReadable(t *testing.T) {
	long := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = '<'
		}
		return string(b)
	}
	s := scene.ReadSidecar(t, `{}`).SidecarState(t)
	r := scene.SidecarRecord(PhaseActing)
	r.Pod.Namespace, r.Pod.Name, r.Pod.UID = long(63), long(253), long(36)
	r.Intent.UID, r.Intent.Task, s.Key, s.Name = long(36), long(36), SidecarKey(*r.Pod), r.Pod.String()
	s.Record, s.Call = r, &lifecycle.Call{IntentID: r.Intent.ID, Outcome: CallRefused, Why: long(5000)}
	verifying := sidecar.Decide(s, scene.Noon).Record
	require.Equal(t, PhaseVerifying, verifying.Phase)
	s.Record, s.Call, s.Alerts = verifying, nil, []Alert{{Fingerprint: scene.FP, Policy: "sidecar-not-ready"}}
	s.Seen = &sidecar.Observation{At: scene.Noon.Add(59 * time.Second), Pod: *r.Pod, Node: "n1", Held: long(5000)}
	s.Snapshot.AskedAt, s.LookSince = scene.Noon.Add(time.Minute), scene.Noon.Add(time.Minute)
	d := sidecar.Decide(s, scene.Noon.Add(time.Minute))
	require.Equal(t, ReasonSidecarHeld, d.Reason, d.Message)
	for _, r := range []*Record{verifying, d.Record} {
		text := r.Encode()
		require.LessOrEqual(t, len(text), MaxRecordBytes)
		_, err := DecodeRecord(text)
		require.NoError(t, err)
	}
}

// FuzzDecideSidecar feeds arbitrary annotations and observations to a decision that everything else
// allows. Decide must not panic, must not act against a person, on unreadable data or on missing
// data, and must return the same decision twice.
func FuzzDecideSidecar(f *testing.F) {
	for _, g := range scene.GoldensIn(f, "decide") {
		text, err := os.ReadFile(g.Input)
		require.NoError(f, err)
		s := scene.ReadSidecar(f, string(text)).SidecarState(f)
		v := s.Seen
		if v == nil {
			v = &sidecar.Observation{}
		}
		a := s.Node.Annotations
		f.Add(a[s.Key], a[AlertPrefix+scene.FP], a[PauseKey], a[CancelKey], a[HistoryKey], a[NodeRepairKey], string(v.Health), v.Held, v.Unknown, v.Pod.UID, v.Node, int64(0), int64(1))
	}
	f.Fuzz(func(t *testing.T, record, alert, pause, cancel, history, ofNode, health, held, unknown, uid, host string, seconds, age int64) {
		s := scene.ReadSidecar(t, `{}`).SidecarState(t)
		for key, v := range map[string]string{s.Key: record, AlertPrefix + scene.FP: alert, PauseKey: pause, CancelKey: cancel, HistoryKey: history, NodeRepairKey: ofNode} {
			delete(s.Node.Annotations, key)
			if v != "" {
				s.Node.Annotations[key] = v
			}
		}
		s.Journal, s.Record, s.Alerts = ReadJournal(s.Node), nil, nil
		for _, one := range s.Config.Subjects(KindSidecar, s.Journal) {
			if one.Key == s.Key {
				s.Subject = one
			}
		}
		now := scene.Noon.Add(time.Duration(seconds%(7*24*3600)) * time.Second)
		s.LookSince, s.Snapshot.AskedAt = now, now
		for i, r := range s.Snapshot.Replicas {
			a := r.Alerts[scene.FP]
			a.UpdatedAt, a.EndsAt = now, now.Add(4*time.Minute)
			s.Snapshot.Replicas[i].Alerts[scene.FP] = a
		}
		s.Seen = &sidecar.Observation{At: now.Add(-time.Duration(age%60) * time.Second), Pod: Pod{Namespace: "sei", Name: "a-0", UID: uid}, Node: host, Health: sidecar.Health(health), Held: held, Unknown: unknown}
		d := sidecar.Decide(s, now)
		require.Equal(t, d, sidecar.Decide(s, now))
		node1, node2 := node.Decide(s.State, now), node.Decide(s.State, now)
		require.Equal(t, node1, node2, "nor does the node's own decision trip over it")
		if d.Record != nil {
			again, err := DecodeRecord(d.Record.Encode())
			require.NoError(t, err, "what Decide writes, it reads")
			require.Equal(t, d.Record.Phase, again.Phase)
		}
		if d.Verb != lifecycle.VerbIssue {
			return
		}
		require.NoError(t, s.Journal.Malformed)
		require.Equal(t, []any{sidecar.HealthNotReady, "", "", "n1", true}, []any{s.Seen.Health, held, unknown, host, uid != ""})
		require.LessOrEqual(t, now.Sub(s.Seen.At), LookFor)
		require.False(t, s.Journal.Record != nil && s.Journal.Record.Phase.InFlight())
		if pause != "" {
			p, err := ParsePause(pause)
			require.NoError(t, err)
			require.False(t, p.Until.IsZero() || now.Before(p.Until), "paused")
		}
		require.NotContains(t, scene.RecordIDs(s.Record), d.Record.Intent.ID, "no intent is issued twice")
		require.Equal(t, scene.NewTask, d.Record.Intent.Task)
		require.Equal(t, PhaseActing, d.Record.Phase)
	})
}
