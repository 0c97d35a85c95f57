package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/routing"
	"drydock.dev/drydock/remediations/testing/scene"
)

var anyHost = rapid.SampledFrom([]string{"cp-1", "cp-2", "cp-3"})

func drawTries(t *rapid.T, at time.Time) (out []HostTry) {
	for i, host := range rapid.SliceOfNDistinct(anyHost, 0, 3, rapid.ID[string]).Draw(t, "hosts") {
		out = append(out, HostTry{
			Host: host, Attempt: fmt.Sprintf("r1-%d", i+1), At: at.Add(time.Duration(i-3) * time.Minute), Why: rapid.SampledFrom([]string{"", "dead"}).Draw(t, "why"),
			Outcome: rapid.SampledFrom([]remediations.CallOutcome{remediations.CallAccepted, remediations.CallRefused, remediations.CallUnknown}).Draw(t, "outcome"),
		})
	}
	return out
}

func drawRescue(t *rapid.T) *Rescue {
	r := &Rescue{
		V: remediations.RecordVersion, ID: "r1", Policy: "apiserver-down", Cause: remediations.Cause{Alert: scene.FP}, Phase: rapid.SampledFrom(phasesOfARescue).Draw(t, "phase"),
		Began: scene.Noon.Add(-5 * time.Minute), Since: scene.Noon.Add(-time.Minute), Hosts: drawTries(t, scene.Noon),
		Deadline: scene.Noon.Add(rapid.SampledFrom([]time.Duration{-time.Minute, -time.Second, time.Minute}).Draw(t, "deadline")),
	}
	if len(r.Hosts) == 0 {
		r.Phase = remediations.PhasePending
	} else {
		r.Over = scene.Noon.Add(rapid.SampledFrom([]time.Duration{-time.Hour, -time.Second, time.Minute}).Draw(t, "over"))
	}
	r.Issued = len(r.Hosts)
	if r.Phase == remediations.PhaseActing {
		r.Hosts[len(r.Hosts)-1].Outcome = ""
	}
	if r.Phase == remediations.PhaseExhausted {
		r.Deadline = time.Time{}
	}
	if len(r.Hosts) == 0 && rapid.Bool().Draw(t, "observed") {
		r.Observed = &HostTry{Host: anyHost.Draw(t, "observed on"), Attempt: "r1-1", At: scene.Noon.Add(-time.Minute)}
	}
	if rapid.Bool().Draw(t, "held") {
		r.Hold = &remediations.Hold{Reason: rapid.SampledFrom(remediations.Reasons).Draw(t, "reason"), Message: "held", Since: scene.Noon.Add(-time.Minute)}
	}
	return r
}

var phasesOfARescue = []remediations.Phase{remediations.PhasePending, remediations.PhaseActing, remediations.PhaseVerifying, remediations.PhaseExhausted}

func drawJournal(t *rapid.T) RescueJournal {
	var j RescueJournal
	for i := range rapid.IntRange(0, 3).Draw(t, "ended") {
		id := fmt.Sprintf("e%d", i)
		e := &EndedRescue{Hosts: drawTries(t, scene.Noon.Add(-20*time.Minute)), Entry: remediations.Entry{
			ID: id, Policy: "apiserver-down", Target: string(remediations.KindAPIServer), Outcome: rapid.SampledFrom(remediations.Outcomes).Draw(t, "outcome"),
			Steps: remediations.Attempts{}, Began: scene.Noon.Add(-time.Hour), Ended: scene.Noon.Add(time.Duration(i-10) * time.Minute), Cause: scene.FP,
		}}
		if e.Outcome == remediations.OutcomeObserved {
			e.Hosts, e.ObservedOn, e.Would = nil, anyHost.Draw(t, "observed on"), &remediations.Would{Step: remediations.Attempt{Name: "restart-kubelet", Number: 1}, At: scene.Noon.Add(-30 * time.Minute)}
		}
		j = j.With(RescueEntry{Ended: e})
		if rapid.Bool().Draw(t, "told") {
			j = j.With(RescueEntry{InHistory: &RescueInHistory{ID: id, Node: anyHost.Draw(t, "node")}})
		}
		if rapid.IntRange(0, 3).Draw(t, "reset") == 0 {
			j = j.With(RescueEntry{Reset: true})
		}
	}
	if rapid.Bool().Draw(t, "a rescue") {
		j = j.With(RescueEntry{Rescue: drawRescue(t)})
	}
	return j
}

// TestWhatARescueMayDo draws random states, and checks the invariants on the decisions.
func TestWhatARescueMayDo(t *testing.T) {
	whole, issued, ended := t, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.Bool().Draw(t, "what is seen is as usual") // otherwise hardly any case is complete
		mostly := func(name, usual string, other ...string) string {
			if plain || rapid.IntRange(0, 5).Draw(t, name+" is as usual") > 0 {
				return usual
			}
			return rapid.SampledFrom(other).Draw(t, name)
		}
		sc := &rescueScene{Sights: map[string]string{}}
		sc.Policy.Mode = rapid.SampledFrom([]remediations.Mode{remediations.ModeEnforce, remediations.ModeEnforce, remediations.ModeEnforce, remediations.ModeObserve, remediations.ModeOff}).Draw(t, "mode")
		sc.Policy.Gone = rapid.IntRange(0, 9).Draw(t, "gone") == 0
		sc.Limits.RepairsPerNode = rapid.IntRange(1, 3).Draw(t, "limit")
		for _, h := range []string{"cp-1", "cp-2", "cp-3"} {
			sc.Sights[h] = mostly(h, "Failing refused", "Unknown 401", "Ready", "Ready", "never")
		}
		sc.Seen = mostly("seen", "2s", "-1s", "0s", "9s", "11s", "2m")
		sc.Word.Age = mostly("asked", "2s", "-1s", "0s", "9s", "11s", "31s")
		for range 2 {
			sc.Word.Replicas = append(sc.Word.Replicas, scene.Replica{
				Alert: mostly("alert", "active", "silenced", "inhibited", "muted", "absent", "unprocessed"),
				Err:   rapid.SampledFrom([]string{"", "", "", "down"}).Draw(t, "down"), NoWatchdog: rapid.IntRange(0, 4).Draw(t, "no watchdog") == 0,
			})
		}
		if rapid.IntRange(0, 4).Draw(t, "posted") == 0 {
			sc.Posted = []scene.Alert{{}}
		}
		if rapid.IntRange(0, 4).Draw(t, "paused") == 0 {
			text := rapid.SampledFrom([]string{"true", "", "why", "2026-03-04T11:00:00Z", "2026-03-04T13:00:00Z"}).Draw(t, "pause")
			sc.Paused = &text
		}
		s := sc.state(whole)
		people := s.Journal.Paused
		s.Journal = drawJournal(t)
		s.Journal.Paused, s.Journal.Reset = people, rapid.IntRange(0, 9).Draw(t, "reset") == 0
		if r := s.Journal.Rescue; r != nil && r.Phase == remediations.PhaseActing && rapid.Bool().Draw(t, "a call") {
			s.Call = &RescueCall{
				Attempt: r.last().Attempt, Outcome: rapid.SampledFrom([]remediations.CallOutcome{"", remediations.CallAccepted, remediations.CallRefused, remediations.CallUnknown}).Draw(t, "called"),
				Busy: rapid.Bool().Draw(t, "busy"), Withheld: rapid.Bool().Draw(t, "withheld"),
			}
		}
		if rapid.Bool().Draw(t, "well") {
			s.WellSince = scene.Noon.Add(-time.Minute)
		}
		d := Decide(s, scene.Noon)
		require.Contains(t, lifecycle.Verbs, d.Verb)
		after := s.Journal
		for _, e := range d.Write {
			again, err := DecodeRescueEntry(e.Encode())
			require.NoError(t, err, e.Encode())
			after = after.With(again)
		}
		if r := after.Rescue; r != nil && s.Journal.Rescue != nil && r.ID == s.Journal.Rescue.ID {
			require.GreaterOrEqual(t, r.Issued, s.Journal.Rescue.Issued, "no attempt bears a name twice")
		}
		if d.Verb == lifecycle.VerbEnd {
			ended++
			require.NotEmpty(t, after.Ended)
			require.True(t, after.Rescue == nil || (after.Rescue.Phase == remediations.PhaseExhausted && d.Ended.Outcome == remediations.OutcomeExhausted))
			require.Equal(t, s.Journal.Rescue.observing(), d.Ended.Outcome == remediations.OutcomeObserved, "what was observed is told, and nothing else is")
			if d.Ended.Outcome == remediations.OutcomeRecovered {
				require.True(t, slices.ContainsFunc(d.Ended.Hosts, func(h HostTry) bool {
					return h.Outcome == remediations.CallAccepted && s.Sights[h.Host].State == HostReady && s.Sights[h.Host].At.After(h.At)
				}), "the host that was restarted answers, and was seen since")
			}
		}
		if r := s.Journal.Rescue; r.observing() && (after.Rescue == nil || after.Rescue.ID != r.ID) {
			require.Equal(t, r.ID, after.Ended[0].ID, "what was observed is not forgotten")
		}
		if d.Verb != lifecycle.VerbIssue {
			require.Nil(t, d.Try)
			return
		}
		issued++
		require.Equal(t, remediations.ModeEnforce, d.Policy.Mode, "nothing in observe mode")
		require.False(t, sc.Policy.Gone)
		require.Nil(t, s.Journal.pausedBy(scene.Noon), "a person's pause wins")
		for _, h := range s.Config.ControlPlaneHosts {
			sight := s.Sights[h]
			require.NotEqual(t, HostReady, sight.State, "none is restarted while one works")
			require.WithinDuration(t, scene.Noon, sight.At, remediations.LookFor)
		}
		require.Equal(t, HostFailing, s.Sights[d.Try.Host].State, "unknown is never failing")
		require.Empty(t, s.Snapshot.VerdictFor(scene.FP, s.Config, "").Reason, "confirmed by one, and held by none")
		require.LessOrEqual(t, scene.Noon.Sub(s.Snapshot.AskedAt), s.Config.MaxStaleness-intentGood, "and still so when the call leaves")
		if r := s.Journal.Rescue; r != nil {
			require.False(t, r.Phase == remediations.PhaseActing || r.Phase == remediations.PhaseExhausted)
			require.False(t, r.tried(d.Try.Host), "each host once in a rescue")
			require.True(t, len(r.Hosts) == 0 || scene.Noon.Before(r.Over))
		}
		begun, _ := s.Journal.begun(d.Try.Host, after.Rescue.ID, scene.Noon, s.Config.Limits.RepairsWindow)
		require.Less(t, begun, s.Config.Limits.RepairsPerNode)
		require.Equal(t, remediations.PhaseActing, after.Rescue.Phase)
		require.Equal(t, *d.Try, *after.Rescue.last(), "the intent is what is called for")
		require.NoError(t, MayStillRescue(after, d.Try.Attempt, scene.Noon))
	})
	if !testing.Short() { // a fifth of the cases need not show it
		require.Positive(t, issued)
		require.Positive(t, ended)
	}
}

// intentGood is the time of invariant 4: a call with an older intent must not be made.
const intentGood = 10 * time.Second

// TestJournalInItsShortestForm: Entries gives the same journal again.
func TestJournalInItsShortestForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJournal(t)
		var again RescueJournal
		for _, e := range j.Entries() {
			again = again.With(e)
		}
		for id := range j.InHistory {
			require.ElementsMatch(t, j.InHistory[id], again.InHistory[id])
		}
		j.InHistory, again.InHistory = nil, nil
		require.Equal(t, j, again)
	})
}

// TestJournalIsBounded: the journal keeps a hundred ended rescues, which is enough for every limit.
func TestJournalIsBounded(t *testing.T) {
	var j RescueJournal
	for i := range 2 * maxEnded {
		j = j.With(RescueEntry{Ended: &EndedRescue{Entry: remediations.Entry{ID: fmt.Sprintf("e%d", i), Policy: "p", Outcome: remediations.OutcomeCancelled, Ended: scene.Noon}}})
	}
	require.Len(t, j.Ended, maxEnded)
	require.Equal(t, "e199", j.Ended[0].ID)
	tries := make([]HostTry, MaxControlPlaneHosts)
	for i := range tries {
		tries[i] = HostTry{Host: fmt.Sprintf("cp-%d", i), Attempt: "a", At: scene.Noon, Outcome: remediations.CallRefused, Why: text.Line(strings.Repeat("\"", 400), 300), Evidence: remediations.EvidenceOf(strings.Repeat("\"\n", 4000))}
	}
	longest := RescueEntry{Rescue: &Rescue{
		V: remediations.RecordVersion, ID: "r1", Policy: "p", Cause: remediations.Cause{Alert: scene.FP}, Phase: remediations.PhaseVerifying, Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon, Over: scene.Noon, Hosts: tries, Issued: len(tries),
	}}
	_, err := DecodeRescueEntry(longest.Encode())
	require.NoError(t, err, "%d bytes", len(longest.Encode()))
}

// TestRescueWithAsManyHostsAsThereMayBe: a further host is refused.
func TestRescueWithAsManyHostsAsThereMayBe(t *testing.T) {
	sc := readRescue(t, []byte(`{}`))
	s := sc.state(t)
	r := &Rescue{V: remediations.RecordVersion, ID: "r1", Policy: "apiserver-down", Cause: remediations.Cause{Alert: scene.FP}, Phase: remediations.PhasePending, Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon.Add(time.Minute), Over: scene.Noon.Add(time.Minute)}
	for i := range MaxControlPlaneHosts {
		r.Hosts = append(r.Hosts, HostTry{Host: fmt.Sprintf("n%d", i), Attempt: "a", At: scene.Noon.Add(-time.Minute), Outcome: remediations.CallAccepted})
	}
	s.Journal.Rescue = r
	require.Equal(t, remediations.OutcomeExhausted, Decide(s, scene.Noon).Ended.Outcome)
}

// TestEntriesThatDrydockDidNotWrite: each entry is refused for its own fault.
func TestEntriesThatDrydockDidNotWrite(t *testing.T) {
	const good = `{"rescue":{"v":1,"id":"r1","policy":"p","cause":{"alert":"aa"},"phase":"Verifying","began":"2026-03-04T12:00:00Z","since":"2026-03-04T12:00:00Z","deadline":"2026-03-04T12:00:00Z","over":"2026-03-04T12:00:00Z","hosts":[{"host":"cp-1","attempt":"r1-1","at":"2026-03-04T12:00:00Z","outcome":"accepted"}],"issued":1}}`
	_, err := DecodeRescueEntry(good)
	require.NoError(t, err)
	for _, change := range [][2]string{
		{`"v":1`, `"v":2`}, {`"id":"r1"`, `"id":""`}, {`"policy":"p"`, `"policy":""`}, {`"alert":"aa"`, `"request":"policy/p"`}, {`Verifying`, `Dreaming`},
		{`"began":"2026-03-04T12:00:00Z",`, ``}, {`"over":"2026-03-04T12:00:00Z",`, ``}, {`"issued":1`, `"issued":0`}, {`"host":"cp-1"`, `"host":"CP 1"`},
		{`"outcome":"accepted"`, `"outcome":"perhaps"`}, {`,"outcome":"accepted"`, ``}, {`Verifying`, `Acting`}, {`"attempt":"r1-1"`, `"attempt":""`}, {`"issued":1`, `"issued":1,"x":1`},
		{`{"rescue"`, `{"reset":true,"rescue"`}, {good, `{}`}, {good, `nonsense`}, {good, `{"told":{"id":"","node":"cp-1"}}`}, {good, `{"told":{"id":"r1","node":"CP"}}`},
		{good, `{"ended":{"id":"r1","policy":"p","outcome":"Perhaps","steps":[],"began":"2026-03-04T12:00:00Z","ended":"2026-03-04T12:00:00Z"}}`},
		{good, `{"ended":{"id":"r1","policy":"p","outcome":"Recovered","steps":[],"began":"2026-03-04T12:00:00Z","ended":"2026-03-04T12:00:00Z","hosts":[{"host":""}]}}`},
		{good, `"` + strings.Repeat("x", maxEntryBytes) + `"`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		require.NotEqual(t, good, bad)
		_, err := DecodeRescueEntry(bad)
		require.Error(t, err, text.Line(bad, 400))
	}
}

// TestHistoryOfAHost: the entry in each host's history has the attempt on that host.
func TestHistoryOfAHost(t *testing.T) {
	e := EndedRescue{
		Entry: remediations.Entry{ID: "r1", Policy: "p", Outcome: remediations.OutcomeRecovered, Why: "cured"},
		Hosts: []HostTry{{Host: "cp-1", Attempt: "r1-1", Outcome: remediations.CallRefused, Why: "no key"}, {Host: "cp-2", Attempt: "r1-2", Outcome: remediations.CallAccepted, Evidence: "bye"}},
	}
	var j RescueJournal
	require.Equal(t, []string{"cp-1", "cp-2"}, j.MissingInHistory(e))
	j = j.With(RescueEntry{Ended: &e}).With(RescueEntry{InHistory: &RescueInHistory{ID: "r1", Node: "cp-1"}})
	require.Equal(t, []string{"cp-2"}, j.MissingInHistory(e))
	require.Equal(t, "r1-1: refused: no key; cured", e.Of("cp-1").Why)
	require.Equal(t, "bye", e.Of("cp-2").Evidence)
	require.Equal(t, string(remediations.KindAPIServer), e.Of("cp-2").Target)
}

// TestAlertsAboutTheAPIServers: they come from the Alertmanagers and from posts, the oldest first.
// Alerts about other targets are left out.
func TestAlertsAboutTheAPIServers(t *testing.T) {
	c := readRescue(t, []byte(`{}`)).config(t)
	w := &alerts.Snapshot{AskedAt: scene.Noon, Replicas: []alerts.Replica{{Alerts: map[string]alerts.Alert{
		"a1": {Labels: map[string]string{"remediation": "apiserver-down"}, StartsAt: scene.Noon.Add(-time.Minute)},
		"a2": {Labels: map[string]string{"remediation": "node-not-ready", "node": "n1"}, StartsAt: scene.Noon},
	}}}}
	var got []string
	for _, a := range Alerts(c, w, []remediations.Alert{{Fingerprint: "a3", StartsAt: scene.Noon.Add(-time.Hour)}, {Fingerprint: "a0", StartsAt: scene.Noon.Add(-time.Minute)}, {Fingerprint: "a1", Status: remediations.StatusResolved}}, nil) {
		got = append(got, a.Fingerprint+" "+a.Status)
	}
	require.Equal(t, []string{"a3 ", "a0 ", "a1 firing"}, got)
	route, why := routing.Of(c, map[string]string{"remediation": "apiserver-down"}, noNode)
	require.Equal(t, remediations.MisrouteNone, why)
	require.Equal(t, remediations.KindAPIServer, route.Policy.Kind)
	c.ControlPlaneHosts = nil
	_, why = routing.Of(c, map[string]string{"remediation": "apiserver-down"}, func(string) *corev1.Node { return nil })
	require.Equal(t, remediations.MisrouteNoPolicy, why, "nobody knows where the API servers are")
	require.False(t, c.Wants(map[string]string{"remediation": "apiserver-down"}))
}

// FuzzRescueEntry: any line is refused or decoded, and a decision about a decoded line breaks no
// invariant.
func FuzzRescueEntry(f *testing.F) {
	f.Add(`{"rescue":{"v":1,"id":"r1","policy":"apiserver-down","cause":{"alert":"8b2d1f0c3a4e5d67"},"phase":"Verifying","began":"2026-03-04T12:00:00Z","since":"2026-03-04T11:00:00Z","deadline":"2026-03-04T11:30:00Z","over":"2026-03-04T12:10:00Z","hosts":[{"host":"cp-1","attempt":"r1-1","at":"2026-03-04T11:00:00Z","outcome":"accepted"}],"issued":1}}`)
	f.Add(`{"rescue":{"v":1,"id":"r1","policy":"apiserver-down","cause":{"alert":"8b2d1f0c3a4e5d67"},"phase":"Pending","began":"2026-03-04T12:00:00Z","since":"2026-03-04T11:00:00Z","deadline":"2026-03-05T11:30:00Z"}}`)
	f.Add(`{"ended":{"id":"r1","policy":"apiserver-down","outcome":"Recovered","steps":[],"began":"2026-03-04T12:00:00Z","ended":"2026-03-04T12:00:00Z"}}`)
	f.Add(`{"told":{"id":"r1","node":"cp-1"}}`)
	f.Add(`{"reset":true}`)
	f.Add(`{"dropped":"r1"}`)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := DecodeRescueEntry(text)
		if err != nil {
			return
		}
		again, err := DecodeRescueEntry(e.Encode())
		require.NoError(t, err)
		require.Equal(t, e.Encode(), again.Encode())
		s := readRescue(t, []byte(`{}`)).state(t)
		s.Journal = s.Journal.With(e)
		d := Decide(s, scene.Noon)
		if d.Verb == lifecycle.VerbIssue && s.Journal.Rescue != nil {
			require.False(t, s.Journal.Rescue.tried(d.Try.Host))
		}
		for _, w := range d.Write {
			_, err := DecodeRescueEntry(w.Encode())
			require.NoError(t, err, w.Encode())
		}
	})
}
