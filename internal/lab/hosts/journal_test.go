package hosts

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The input is what systemd wrote on a real host when an attempt met the unit's own Restart=, with
// a kubelet that dies all the time.
func TestAnAttemptThatMeetsSystemdsOwnRestartIsStillTheAttempts(t *testing.T) {
	boot, scheduled, started := entry{ID: unitStarted, Unit: KubeletUnit}, entry{ID: restartScheduled, Unit: KubeletUnit}, entry{ID: unitStarted, Unit: KubeletUnit}
	asked := func(name string) entry {
		return entry{ID: unitStarting, Unit: restartPrefix + KubeletUnit, Message: "Starting drydock-restart-kubelet.service - drydock:" + name + "..."}
	}
	for name, c := range map[string]struct {
		journal []entry
		want    []string
	}{
		"each by itself":                              {[]entry{scheduled, started, asked("a"), started, started}, []string{BySystemd, "drydock:a", ByUnknown}},
		"one start for both":                          {[]entry{asked("a"), scheduled, started, scheduled, started, started}, []string{"drydock:a", BySystemd, ByUnknown}},
		"one start for both, systemd first":           {[]entry{scheduled, asked("a"), started, asked("b"), started}, []string{"drydock:a", "drydock:b"}},
		"a start for each":                            {[]entry{asked("a"), scheduled, started, started, scheduled, started}, []string{BySystemd, "drydock:a", BySystemd}},
		"a start for each, and one of unknown origin": {[]entry{asked("a"), scheduled, started, started, started}, []string{BySystemd, "drydock:a", ByUnknown}},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			for _, e := range append([]entry{boot}, c.journal...) {
				e.At, e.Boot = "1", "1"
				require.NoError(t, json.NewEncoder(&text).Encode(e))
			}
			got, err := restartsIn(text.String(), KubeletUnit)
			require.NoError(t, err)
			by := []string{}
			for _, r := range got {
				by = append(by, r.By)
			}
			require.Equal(t, c.want, by)
		})
	}
}
