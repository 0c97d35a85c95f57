package real

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/alertmanager"
	"drydock.dev/drydock/remediations/alerts"
)

func TestMuteTimesMuteTheReceiversGroups(t *testing.T) {
	w := newWorld(t)
	muted, inactive, plain := alert("muted", "mute=mute"), alert("inactive", "mute=inactive"), alert("awake")
	// The first control is muted for the pager, and goes to Drydock as well.
	others := alert("others", "mute=others")
	w.fire(muted, inactive, plain, others)
	by := func(names ...string) func(alerts.Alert) bool {
		return func(a alerts.Alert) bool { return slices.Equal(names, a.MutedBy) }
	}
	w.eventually(muted, by("always"))
	w.eventually(inactive, by("long-ago"))
	w.pager().eventually(others, by("always")) // so the pager's group was flushed, and is muted
	for _, r := range w.poll() {
		require.True(t, of(t, r, muted).Active, "a mute time is not in the alert's own state")
		require.Empty(t, of(t, r, others).MutedBy, "the pager's mute time is not Drydock's")
		require.Empty(t, of(t, r, plain).MutedBy)
	}
	for _, r := range w.pager().poll() {
		require.Empty(t, of(t, r, muted).MutedBy, "Drydock's mute time is not the pager's")
	}
}

// TestAMuteTimeIsAsOldAsTheLastFlush checks the documentation: a group without a notification does
// not show that it is muted.
func TestAMuteTimeIsAsOldAsTheLastFlush(t *testing.T) {
	w := newWorld(t)
	late, muted := alert("late", "mute=late"), alert("late-not", "mute=mute")
	w.fire(late, muted)
	w.eventually(muted, func(a alerts.Alert) bool { return len(a.MutedBy) > 0 })
	for _, r := range w.poll() {
		require.Empty(t, of(t, r, late).MutedBy)
	}
}

// pager returns the same world with polls for the groups of the receiver pager.
func (w *world) pager() *world {
	w.t.Helper()
	client, err := alertmanager.New(alertmanager.Options{URLs: w.urls, Receiver: "pager", Timeout: lab.Patience})
	require.NoError(w.t, err)
	w.t.Cleanup(client.Close)
	other := *w
	other.client = client
	return &other
}
