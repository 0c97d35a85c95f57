package remediations_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestTheHistorySaysSinceWhenItLacksNothing: every repair that the history has dropped ended before
// the time that RemembersSince returns.
func TestTheHistorySaysSinceWhenItLacksNothing(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(i int) Entry{
		"repairs": func(int) Entry { return Entry{Outcome: OutcomeRecovered, Steps: Attempts{{Name: "reboot", Number: 1}}} },
		"long ones": func(int) Entry {
			return Entry{Outcome: OutcomeRecovered, Steps: Attempts{{Name: "reboot", Number: 1}}, Why: strings.Repeat("w", 300), Evidence: strings.Repeat("e", 1200)}
		},
		"only observed": func(int) Entry {
			return Entry{Outcome: OutcomeObserved, Would: &Would{Step: Attempt{Name: "reboot", Number: 1}}}
		},
		"of two kinds": func(i int) Entry { return Entry{Outcome: OutcomeRecovered, Target: []string{"", "leader"}[i%2]} },
		"observed between": func(i int) Entry {
			return Entry{Outcome: []Outcome{OutcomeObserved, OutcomeRecovered}[i%2], Would: &Would{}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all, kept []Entry
			for i := range 40 {
				e := of(i)
				e.ID, e.Policy, e.Began = fmt.Sprintf("aaaa%02d", i), "p", scene.Noon.Add(time.Duration(i)*time.Hour)
				e.Ended = e.Began.Add(time.Minute)
				all = append(all, e)
				kept = DecodeHistory(EncodeHistory(kept, e))
				since := RemembersSince(kept)
				for _, one := range all {
					there := strings.Contains(EncodeEntries(kept), one.ID)
					require.True(t, there || one.Ended.Before(since), "%s was forgotten, and the history claims to be whole since %s", one.ID, since)
				}
				if i == 1 && !strings.Contains(name, "long") {
					require.Zero(t, since, "the control: there is room")
				}
			}
			require.NotZero(t, RemembersSince(kept))
		})
	}
}
