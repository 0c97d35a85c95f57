package alertmanager

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/alerts"
)

// TestAReplicasAnswerInTheCoresTerms: nothing of what a decision rests on is lost, and only an alert in the state active is active.
func TestAReplicasAnswerInTheCoresTerms(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	r := Replica{
		URL: "http://a", Watchdog: true, WatchdogAt: at, BlindBy: []string{"DrydockSourceDown", "Other"}, NoReceiver: true, Akin: []string{"x/drydock"},
		SourceSeenAt: at, SourceSeenUntil: at.Add(time.Hour), Inhibitors: map[string]string{"f1": "Big"},
		Alerts: map[string]Alert{
			"f0": {Labels: map[string]string{"node": "n0"}, StartsAt: at, EndsAt: at.Add(time.Minute), UpdatedAt: at.Add(time.Second), State: StateActive, Receivers: []string{"drydock"}},
			"f1": {Labels: map[string]string{"node": "n1"}, State: StateSuppressed, SilencedBy: []string{"s1"}, InhibitedBy: []string{"f9"}, MutedBy: []string{"night"}},
		},
		Silences: map[string]Silence{"s1": {ID: "s1", Author: "ann", Comment: "why", EndsAt: at}},
	}
	w := r.word()
	require.Equal(t, alerts.Replica{
		URL: "http://a", Watchdog: true, WatchdogAt: at, BlindBy: "Other", SourceDown: true, SourceSeen: &alerts.Alert{UpdatedAt: at, EndsAt: at.Add(time.Hour)}, NoReceiver: true, Akin: []string{"x/drydock"},
		Inhibitors: map[string]string{"f1": "Big"},
		Alerts: map[string]alerts.Alert{
			"f0": {Labels: map[string]string{"node": "n0"}, StartsAt: at, EndsAt: at.Add(time.Minute), UpdatedAt: at.Add(time.Second), Active: true, Receivers: []string{"drydock"}},
			"f1": {Labels: map[string]string{"node": "n1"}, SilencedBy: []string{"s1"}, InhibitedBy: []string{"f9"}, MutedBy: []string{"night"}},
		},
		Silences: map[string]alerts.Silence{"s1": {Author: "ann", Comment: "why", EndsAt: at}},
	}, w)
	down := Replica{URL: "http://b", Err: errors.New("no route")}
	require.EqualError(t, down.word().Err, "no route")
}

// TestWhoKeepsTheSelfTestQuietIsNamed: a silence before an inhibition, and that before a time interval; of nobody, nothing is said.
func TestWhoKeepsTheSelfTestQuietIsNamed(t *testing.T) {
	for quiet, s := range map[string]SelfTest{
		"":                               {},
		"silenced by s1, s2":             {SilencedBy: []string{"s1", "s2"}, InhibitedBy: []string{"f"}},
		"inhibited by the alert f":       {InhibitedBy: []string{"f"}, MutedBy: []string{"night"}},
		"muted by the time interval day": {MutedBy: []string{"day"}},
	} {
		s.Receivers = []string{"drydock"}
		require.Equal(t, alerts.SelfTestAlert{Receivers: []string{"drydock"}, Quiet: quiet}, s.word())
	}
}

// TestARepairsSilenceIsDrydocksOwn, from now until the end that the engine gives it; the replica that is asked keeps it.
func TestARepairsSilenceIsDrydocksOwn(t *testing.T) {
	asked := make(chan []byte, 1)
	url := parts(t, nil, map[string]http.HandlerFunc{"POST /silences": func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked <- body
		jsonly([]byte(`{"silenceID":"`+silenceID(1)+`"}`))(w, r)
	}})
	id, err := Repairs{newClient(t, Options{URLs: []string{url}})}.Silence(t.Context(), map[string]string{"node": "n1"}, time.Now().Add(time.Hour), "repair abc234")
	require.NoError(t, err)
	require.Equal(t, silenceID(1), id)
	body := string(<-asked)
	require.Contains(t, body, `"createdBy":"drydock"`)
	require.Contains(t, body, `"comment":"repair abc234"`)
}

// TestLookAsksEveryReplica: also one that does not answer is in it, with its error.
func TestLookAsksEveryReplica(t *testing.T) {
	words := newClient(t, Options{URLs: []string{gone(t), gone(t)}}).Look(t.Context())
	require.Len(t, words, 2)
	require.Error(t, words[0].Err)
	require.Error(t, words[1].Err)
}
