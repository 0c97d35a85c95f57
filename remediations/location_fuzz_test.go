package remediations

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLongestRecordOfALeaderIsReadable: the longest names, all moves, and what others say in bytes that JSON writes twice
// as long, fit in a record.
func TestLongestRecordOfALeaderIsReadable(t *testing.T) {
	nasty := func(n int) string { return strings.Repeat(`"`, n) }
	r := leaderRecord(Verifying)
	r.Location, r.Policy = nasty(maxLocation/2), strings.Repeat("p", 63)
	r.Moves, r.Undo, r.Done = nil, nil, nil
	for i := range MaxMoves {
		m := Move{Location: r.Location, From: strings.Repeat("f", 100), To: strings.Repeat("t", 99), Before: map[string]*string{strings.Repeat("t", 99): nil}}
		m.To = m.To[:98] + string(rune('a'+i))
		filler := ""
		m.Before["x"] = &filler
		filler = strings.Repeat("x", maxMoveBytes-len(EncodeJSON(m)))
		require.NoError(t, m.Validate())
		r.Moves, r.Done = append(r.Moves, m), append(r.Done, "promote-leader:1")
		r.Undo = append(r.Undo, Undo{Kind: UndoLeader, Key: m.To, At: noon})
	}
	r.Intent.Successor, r.Intent.Outcome = r.Moves[MaxMoves-1].To, CallUnknown
	s := readLeaderScene(t, `{sight: {leader: n2}}`).locationState(t)
	s.Config.Policies[0].Name = r.Policy
	s.Ledger.moved(r.Location, r.ID, r.Intent.At)
	s.Record, s.Call, s.Name = r, &Call{IntentID: r.Intent.ID, Outcome: CallRefused, Why: nasty(5000)}, r.Location
	verifying := DecideLocation(s, noon).Record
	require.Equal(t, Verifying, verifying.Phase)

	s.Record, s.Call = verifying, nil
	s.Sight.Leader, s.Sight.ReachedWhy, s.Sight.At = r.Intent.Successor, nasty(5000), noon.Add(time.Minute)
	s.Word.AskedAt, s.LookSince = noon.Add(time.Minute), noon.Add(time.Minute)
	back := DecideLocation(s, noon.Add(time.Minute))
	require.NotNil(t, back.PutBack, back.Message)

	s.Record, s.Call = back.Record, &Call{IntentID: r.PutBackID(), Outcome: CallUnknown, Why: nasty(5000)}
	again := DecideLocation(s, noon.Add(2*time.Minute)).Record
	require.NotNil(t, again.Hold)
	again.Hold.Message = clip(nasty(5000), 400)
	for _, r := range []*Record{verifying, back.Record, again} {
		_, err := DecodeRecord(r.Encode())
		require.NoError(t, err)
	}
}

// TestMoveThatTakesTooMuchRoomIsNotMade: what cannot be put on record is not done.
func TestMoveThatTakesTooMuchRoomIsNotMade(t *testing.T) {
	s := readLeaderScene(t, `{}`).locationState(t)
	long := strings.Repeat("x", maxMoveBytes)
	s.Sight.Candidates[0].Before["n7"] = &long
	require.Equal(t, "n3", DecideLocation(s, noon).Record.Intent.Successor)
	s.Sight.Candidates = s.Sight.Candidates[:1]
	d := DecideLocation(s, noon)
	require.Equal(t, LeaderHeld, d.Reason)
	require.Contains(t, d.Message, "at most 800 are kept")
}

// FuzzDecideLeader throws arbitrary annotations and sights at a decision that all else would allow. It must not panic,
// must not act on what a person forbade, nobody can read or nobody saw, and must say the same thing twice.
func FuzzDecideLeader(f *testing.F) {
	for _, g := range goldensIn(f, "leader") {
		text, err := os.ReadFile(g.input)
		require.NoError(f, err)
		s := readLeaderScene(f, string(text)).locationState(f)
		v := s.Sight
		if v == nil {
			v = &LocationSight{}
		}
		to := ""
		if len(v.Candidates) > 0 {
			to = v.Candidates[0].To
		}
		a := s.Node.Annotations
		f.Add(a[LocationKey], a[AlertPrefix+fp], a[PauseKey], a[CancelKey], a[HistoryKey], a[NodeRepairKey], v.Leader, v.Held, v.Unknown, to, v.Reached, int64(0), int64(1))
	}
	f.Fuzz(func(t *testing.T, record, alert, pause, cancel, history, node, leads, held, unknown, to string, reached bool, seconds, age int64) {
		s := readLeaderScene(t, `{}`).locationState(t)
		for key, v := range map[string]string{LocationKey: record, AlertPrefix + fp: alert, PauseKey: pause, CancelKey: cancel, HistoryKey: history, NodeRepairKey: node} {
			delete(s.Node.Annotations, key)
			if v != "" {
				s.Node.Annotations[key] = v
			}
		}
		s.Journal = ReadJournal(s.Node)
		leader, ok := locationOf(s.Config, s.Journal)
		if !ok {
			return
		}
		s.Subject = leader
		now := noon.Add(time.Duration(seconds%(7*24*3600)) * time.Second)
		s.LookSince, s.Word.AskedAt, s.Heartbeats.ReadAt = now, now, now
		for i, r := range s.Word.Replicas {
			a := r.Alerts[fp]
			a.UpdatedAt, a.EndsAt = now, now.Add(4*time.Minute)
			s.Word.Replicas[i].Alerts[fp] = a
		}
		move := theMove(leads, to)
		move.Location = s.Name
		s.Sight = &LocationSight{At: now.Add(-time.Duration(age%60) * time.Second), Leader: leads, Held: held, Unknown: unknown, Reached: reached, Settled: true, Candidates: []Move{move}}
		d := DecideLocation(s, now)
		require.Equal(t, d, DecideLocation(s, now))
		node1, node2 := Decide(s.State, now), Decide(s.State, now)
		require.Equal(t, node1, node2, "nor does the node's own decision trip over it")
		if d.Record != nil {
			again, err := DecodeRecord(d.Record.Encode())
			require.NoError(t, err, "what DecideLocation writes, it reads")
			require.Equal(t, d.Record.Phase, again.Phase)
		}
		if d.Verb != Issue {
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
		require.LessOrEqual(t, now.Sub(s.Sight.At), LookFor)
		require.Equal(t, leads, d.Record.Moves[len(d.Record.Moves)-1].From)
		require.NotEqual(t, s.Node.Name, d.Record.Intent.Successor)
		require.NotContains(t, recordIDs(s.Record), d.Record.Intent.ID, "no intent is issued twice")
		require.Equal(t, Acting, d.Record.Phase)
	})
}
