package real

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/alerts"
)

const untimed = `
route:
  receiver: drydock (eu)
  group_by: [alertname, node]
  group_wait: 0s
  group_interval: 1s
  routes:
  - matchers: [mute="mute"]
    receiver: drydock (eu)
receivers:
- name: drydock (eu)
`

// TestGroupsAreReadIfTimeIntervalsMute: Drydock requests the groups of an Alertmanager as soon as
// its configuration has routes with time intervals, and not before.
func TestGroupsAreReadIfTimeIntervalsMute(t *testing.T) {
	url, file := lab.AlertmanagerAlone(t, untimed)
	w := newWorldAt(t, url)
	muted := alert("n1", "mute=mute")
	w.fire(muted)
	for range 3 {
		require.Empty(t, of(t, w.poll()[0], muted).MutedBy)
	}
	require.False(t, askedForGroups(t, url))

	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	res, err := http.Post(url+"/-/reload", "", nil)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
	w.eventually(muted, func(a alerts.Alert) bool { return slices.Equal([]string{"always"}, a.MutedBy) })
	require.True(t, askedForGroups(t, url), "the control")
}

func askedForGroups(t *testing.T, url string) bool {
	t.Helper()
	res, err := http.Get(url + "/metrics")
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), `handler="/api/v2/alerts"`, "the control: it counts what it is asked for")
	return strings.Contains(string(text), `handler="/api/v2/alerts/groups"`)
}
