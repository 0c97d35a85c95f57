package alertmanager

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestWhatIsKnownChangesNoAnswer: the result is the same with and without the readings of the last
// poll.
func TestWhatIsKnownChangesNoAnswer(t *testing.T) {
	in := interested(t)
	in.selfTest = func(l map[string]string) bool { return l["alertname"] == "DrydockSelfTest" }
	in.nodes = []string{"node"}
	skipped := 0
	rapid.Check(t, func(rt *rapid.T) {
		var pool []*models.GettableAlert
		for i := range rapid.IntRange(1, 8).Draw(rt, "alerts") {
			labels := map[string]string{
				"alertname": rapid.SampledFrom([]string{"NodeNotReady", "Watchdog", "DrydockSourceDown", "DrydockSelfTest"}).Draw(rt, "name"),
				"pod":       fmt.Sprint(i),
			}
			if rapid.Bool().Draw(rt, "of interest") {
				labels["remediation"] = "node-not-ready"
			}
			if rapid.Bool().Draw(rt, "of a node") {
				labels["node"] = "n1"
			}
			a := shown(stateActive, labels)
			if by := rapid.IntRange(-1, i-1).Draw(rt, "inhibited by"); by >= 0 {
				inhibited(a, keyOf(pool[by].Labels))
			}
			pool = append(pool, a)
		}
		var known readings
		for range rapid.IntRange(1, 5).Draw(rt, "polls") {
			alerts := []*models.GettableAlert{}
			for _, a := range pool {
				if rapid.IntRange(0, 3).Draw(rt, "changes") == 0 {
					*a.Status.State = rapid.SampledFrom([]string{stateActive, "suppressed"}).Draw(rt, "state")
				}
				if rapid.IntRange(0, 3).Draw(rt, "is shown") > 0 {
					alerts = append(alerts, a)
				}
			}
			text, err := json.Marshal(alerts)
			require.NoError(rt, err)
			read := func(known readings) *answer {
				a := newAnswer(in, known)
				require.NoError(rt, (&stream{of: "alerts", element: a.read}).Consume(bytes.NewReader(text), nil))
				return a
			}
			with, without := read(known), read(nil)
			require.Equal(rt, without.alerts, with.alerts)
			require.Equal(rt, without.replica(), with.replica())
			require.Equal(rt, without.others, with.others)
			require.Equal(rt, without.readings, with.readings)
			for id := range with.readings {
				if _, ok := known[id]; ok {
					skipped++
				}
			}
			known = with.readings
		}
	})
	require.Positive(t, skipped, "none was known: it shows nothing")
}

// TestAnAlertThatIsThereTwiceIsRefusedAlsoWhenItIsKnown: the alert is known from the last poll.
func TestAnAlertThatIsThereTwiceIsRefusedAlsoWhenItIsKnown(t *testing.T) {
	in := interested(t)
	one := shown(stateActive, map[string]string{"alertname": "NodeNotReady", "remediation": "node-not-ready"})
	read := func(known readings, alerts ...*models.GettableAlert) (readings, error) {
		text, err := json.Marshal(alerts)
		require.NoError(t, err)
		a := newAnswer(in, known)
		return a.readings, (&stream{of: "alerts", element: a.read}).Consume(bytes.NewReader(text), nil)
	}
	known, err := read(nil, one)
	require.NoError(t, err)
	require.Len(t, known, 1)
	_, err = read(known, one)
	require.NoError(t, err, "the control")
	_, err = read(known, one, one)
	require.ErrorContains(t, err, "NodeNotReady twice")
}
