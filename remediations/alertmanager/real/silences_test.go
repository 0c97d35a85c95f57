package real

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/alertmanager"
	"drydock.dev/drydock/remediations/alerts"
)

func TestASilenceOfAmtoolShowsOnTheNextPollAndIsGoneAfterIt(t *testing.T) {
	w := newWorld(t)
	silenced, control := alert("silenced"), alert("silenced-not")
	w.fire(silenced, control)
	require.True(t, of(t, w.poll()[0], silenced).Active)

	begin := time.Now()
	id := w.run(0, "silence", "add", "--author=ada", "--comment=disk swap, ask ada", "--duration=2h", `node="silenced"`)
	replicas := w.poll()
	a := of(t, replicas[0], silenced)
	require.False(t, a.Active)
	require.Equal(t, []string{id}, a.SilencedBy)
	require.Contains(t, replicas[0].Silences, id)
	s := replicas[0].Silences[id]
	require.Equal(t, "ada", s.Author)
	require.Equal(t, "disk swap, ask ada", s.Comment)
	require.WithinDuration(t, begin.Add(2*time.Hour), s.EndsAt, time.Minute)
	require.True(t, of(t, replicas[0], control).Active)

	// The other replica did not receive it, because the two do not gossip.
	require.True(t, of(t, replicas[1], silenced).Active)
	require.Empty(t, of(t, replicas[1], silenced).SilencedBy)
	require.Empty(t, replicas[1].Silences)

	w.run(0, "silence", "expire", id)
	replicas = w.poll()
	require.True(t, of(t, replicas[0], silenced).Active)
	require.Empty(t, of(t, replicas[0], silenced).SilencedBy)
	require.Empty(t, replicas[0].Silences)
}

func TestAnInhibitionNamesTheInhibitor(t *testing.T) {
	w := newWorld(t)
	rack := map[string]string{"alertname": "RackDown", "rack": "r1"}
	inhibited, control := alert("inhibited", "rack=r1"), alert("inhibited-not", "rack=r2")
	w.fire(rack, inhibited, control)
	w.eventually(inhibited, func(a alerts.Alert) bool { return len(a.InhibitedBy) > 0 })
	for _, r := range w.poll() {
		require.Equal(t, []string{fingerprint(rack)}, of(t, r, inhibited).InhibitedBy)
		require.False(t, of(t, r, inhibited).Active)
		require.Contains(t, r.Alerts, fingerprint(rack), "the id leads to the inhibitor")
		require.Empty(t, of(t, r, control).InhibitedBy)
	}
}

func TestDrydocksOwnSilenceSilencesUntilItExpires(t *testing.T) {
	w := newWorld(t)
	rebooting, control := alert("rebooting"), alert("rebooting-not")
	w.fire(rebooting, control)
	now := time.Now()
	own := alertmanager.NewSilence{
		Matchers: map[string]string{"node": "rebooting"},
		StartsAt: now, EndsAt: now.Add(10 * time.Minute),
		Author: "drydock", Comment: "rebooting this node, n7q4k2-1",
	}
	id, err := w.client.Silence(t.Context(), own)
	require.NoError(t, err)

	replicas := w.poll()
	require.Equal(t, []string{id}, of(t, replicas[0], rebooting).SilencedBy)
	require.Equal(t, "drydock", replicas[0].Silences[id].Author)
	require.Equal(t, "rebooting this node, n7q4k2-1", replicas[0].Silences[id].Comment)
	require.WithinDuration(t, own.EndsAt, replicas[0].Silences[id].EndsAt, time.Second)
	require.Empty(t, of(t, replicas[0], control).SilencedBy, "it is narrow")
	require.Empty(t, of(t, replicas[1], rebooting).SilencedBy, "it is the first replica's alone")

	// The second replica answers that it knows no such silence.
	require.NoError(t, w.client.Expire(t.Context(), id))
	require.Empty(t, of(t, w.poll()[0], rebooting).SilencedBy)
	require.NoError(t, w.client.Expire(t.Context(), id), "it is over already")
	require.NoError(t, w.client.Expire(t.Context(), "f1b1c9b0-0000-4000-8000-000000000001"), "nobody knows it")

	// Alertmanager refuses a silence that has already ended, so nothing may have been made.
	own.StartsAt, own.EndsAt = now.Add(-2*time.Hour), now.Add(-time.Hour)
	_, err = w.client.Silence(t.Context(), own)
	require.ErrorContains(t, err, "400 Bad Request")
	require.NotErrorIs(t, err, alertmanager.ErrSilenceMayExist)
}

func TestASilenceGoesToTheReplicaThatLives(t *testing.T) {
	w := newWorld(t)
	l := lab.Shared(t)
	rebooting := alert("rebooting-with-one")
	l.StopAlertmanager(0)
	now := time.Now()
	id, err := w.client.Silence(t.Context(), alertmanager.NewSilence{
		Matchers: rebooting, StartsAt: now, EndsAt: now.Add(time.Minute), Author: "drydock", Comment: "rebooting",
	})
	startErr := l.StartAlertmanager(t.Context(), 0) // the other tests need it
	require.NoError(t, startErr)
	require.NoError(t, err)
	w.fire(rebooting)
	replicas := w.poll()
	require.Empty(t, of(t, replicas[0], rebooting).SilencedBy)
	require.Equal(t, []string{id}, of(t, replicas[1], rebooting).SilencedBy)
	require.NoError(t, w.client.Expire(t.Context(), id))
	require.Empty(t, of(t, w.poll()[1], rebooting).SilencedBy)
}
