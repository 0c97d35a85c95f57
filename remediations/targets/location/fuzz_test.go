package location_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/text"
	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestLongestRecordOfALeaderIsReadable: the longest names, all moves, and foreign messages that
// JSON escapes to twice their length fit in a record.
func TestLongestRecordOfALeaderIsReadable(t *testing.T) {
	nasty := func(n int) string { return strings.Repeat(`"`, n) }
	r := scene.LocationRecord(PhaseVerifying)
	r.Location, r.Policy = nasty(MaxLocation/2), strings.Repeat("p", 63)
	r.Moves, r.Undo, r.Done = nil, nil, nil
	for i := range MaxMoves {
		m := Move{Location: r.Location, From: strings.Repeat("f", 100), To: strings.Repeat("t", 99), Before: map[string]*string{strings.Repeat("t", 99): nil}}
		m.To = m.To[:98] + string(rune('a'+i))
		filler := ""
		m.Before["x"] = &filler
		filler = strings.Repeat("x", MaxMoveBytes-len(EncodeJSON(m)))
		require.NoError(t, m.Validate())
		r.Moves, r.Done = append(r.Moves, m), append(r.Done, Attempt{Name: "promote-leader", Number: 1})
		r.Undo = append(r.Undo, Undo{Kind: UndoLeader, Key: m.To, At: scene.Noon})
	}
	r.Intent.Successor, r.Intent.Outcome = r.Moves[MaxMoves-1].To, CallUnknown
	s := scene.ReadLocation(t, `{sight: {leader: n2}}`).LocationState(t)
	s.Config.Policies[0].Name = r.Policy
	s.Ledger.Moved(r.Location, r.ID, r.Intent.At)
	s.Record, s.Call, s.Name = r, &lifecycle.Call{IntentID: r.Intent.ID, Outcome: CallRefused, Why: nasty(5000)}, r.Location
	verifying := location.Decide(s, scene.Noon).Record
	require.Equal(t, PhaseVerifying, verifying.Phase)

	s.Record, s.Call = verifying, nil
	s.Seen.Leader, s.Seen.ReachedWhy, s.Seen.At = r.Intent.Successor, nasty(5000), scene.Noon.Add(time.Minute)
	s.Snapshot.AskedAt, s.LookSince = scene.Noon.Add(time.Minute), scene.Noon.Add(time.Minute)
	back := location.Decide(s, scene.Noon.Add(time.Minute))
	require.NotNil(t, back.PutBack, back.Message)

	s.Record, s.Call = back.Record, &lifecycle.Call{IntentID: r.PutBackID(), Outcome: CallUnknown, Why: nasty(5000)}
	again := location.Decide(s, scene.Noon.Add(2*time.Minute)).Record
	require.NotNil(t, again.Hold)
	again.Hold.Message = text.Line(nasty(5000), 400)
	for _, r := range []*Record{verifying, back.Record, again} {
		_, err := DecodeRecord(r.Encode())
		require.NoError(t, err)
	}
}

// TestMoveThatTakesTooMuchRoomIsNotMade: Drydock does not make a move that does not fit into the
// record.
func TestMoveThatTakesTooMuchRoomIsNotMade(t *testing.T) {
	s := scene.ReadLocation(t, `{}`).LocationState(t)
	long := strings.Repeat("x", MaxMoveBytes)
	s.Seen.Candidates[0].Before["n7"] = &long
	require.Equal(t, "n3", location.Decide(s, scene.Noon).Record.Intent.Successor)
	s.Seen.Candidates = s.Seen.Candidates[:1]
	d := location.Decide(s, scene.Noon)
	require.Equal(t, ReasonLeaderHeld, d.Reason)
	require.Contains(t, d.Message, "at most 800 are kept")
}

// FuzzDecideLeader passes arbitrary annotations and observations to Decide, in a state that allows
// a move. Decide must not panic, must return the same decision twice, and must not act against a
// person, on unreadable data or on missing data.
func FuzzDecideLeader(f *testing.F) {
	for _, g := range scene.GoldensIn(f, "decide") {
		text, err := os.ReadFile(g.Input)
		require.NoError(f, err)
		s := scene.ReadLocation(f, string(text)).LocationState(f)
		v := s.Seen
		if v == nil {
			v = &location.Observation{}
		}
		to := ""
		if len(v.Candidates) > 0 {
			to = v.Candidates[0].To
		}
		a := s.Node.Annotations
		f.Add(a[LocationKey], a[AlertPrefix+scene.FP], a[PauseKey], a[CancelKey], a[HistoryKey], a[NodeRepairKey], v.Leader, v.Held, v.Unknown, to, v.Reached, int64(0), int64(1))
	}
	f.Fuzz(func(t *testing.T, record, alert, pause, cancel, history, ofNode, leads, held, unknown, to string, reached bool, seconds, age int64) {
		s := scene.ReadLocation(t, `{}`).LocationState(t)
		for key, v := range map[string]string{LocationKey: record, AlertPrefix + scene.FP: alert, PauseKey: pause, CancelKey: cancel, HistoryKey: history, NodeRepairKey: ofNode} {
			delete(s.Node.Annotations, key)
			if v != "" {
				s.Node.Annotations[key] = v
			}
		}
		s.Journal = ReadJournal(s.Node)
		leader, ok := scene.LocationOf(s.Config, s.Journal)
		if !ok {
			return
		}
		s.Subject = leader
		now := scene.Noon.Add(time.Duration(seconds%(7*24*3600)) * time.Second)
		s.LookSince, s.Snapshot.AskedAt, s.Heartbeats.ReadAt = now, now, now
		for i, r := range s.Snapshot.Replicas {
			a := r.Alerts[scene.FP]
			a.UpdatedAt, a.EndsAt = now, now.Add(4*time.Minute)
			s.Snapshot.Replicas[i].Alerts[scene.FP] = a
		}
		move := scene.TheMove(leads, to)
		move.Location = s.Name
		s.Seen = &location.Observation{At: now.Add(-time.Duration(age%60) * time.Second), Leader: leads, Held: held, Unknown: unknown, Reached: reached, Settled: true, Candidates: []Move{move}}
		d := location.Decide(s, now)
		require.Equal(t, d, location.Decide(s, now))
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
		require.False(t, s.Journal.Record != nil && s.Journal.Record.Phase.InFlight())
		if pause != "" {
			p, err := ParsePause(pause)
			require.NoError(t, err)
			require.False(t, p.Until.IsZero() || now.Before(p.Until), "paused")
		}
		if d.PutBack != nil {
			require.NotEmpty(t, s.Record.Moves)
			return
		}
		require.Equal(t, []any{"", "", false}, []any{held, unknown, reached})
		require.LessOrEqual(t, now.Sub(s.Seen.At), LookFor)
		require.Equal(t, leads, d.Record.Moves[len(d.Record.Moves)-1].From)
		require.NotEqual(t, s.Node.Name, d.Record.Intent.Successor)
		require.NotContains(t, scene.RecordIDs(s.Record), d.Record.Intent.ID, "no intent is issued twice")
		require.Equal(t, PhaseActing, d.Record.Phase)
	})
}
