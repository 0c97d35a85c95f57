package scene

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// VerdictFile is a Decision as a golden file shows it.
type VerdictFile struct {
	Verb       lifecycle.Verb       `json:"verb"`
	Reason     remediations.Reason  `json:"reason,omitempty"`
	Message    string               `json:"message,omitempty"`
	Policy     string               `json:"policy,omitempty"`
	Fleet      bool                 `json:"fleetwide,omitempty"`
	Recheck    *time.Time           `json:"recheck,omitempty"`
	Ask        []string             `json:"ask,omitempty"`
	Well       bool                 `json:"well,omitempty"`
	WatchdogAt *time.Time           `json:"heard,omitempty"`
	Cordon     bool                 `json:"cordon,omitempty"`
	Uncordon   bool                 `json:"uncordon,omitempty"`
	Taint      bool                 `json:"taint,omitempty"`
	Untaint    bool                 `json:"untaint,omitempty"`
	PutBack    []remediations.Move  `json:"putBack,omitempty"`
	Stop       string               `json:"stop,omitempty"`
	Allow      []string             `json:"allow,omitempty"`
	Record     *remediations.Record `json:"record,omitempty"`
	Ended      *remediations.Entry  `json:"ended,omitempty"`
	Relapsed   *ledger.Cure         `json:"relapsed,omitempty"`
	Prune      []string             `json:"prune,omitempty"`
	Consume    []string             `json:"consume,omitempty"`
	Notices    []lifecycle.Notice   `json:"notices,omitempty"`
	Pause      string               `json:"pause,omitempty"`
	// Signs are read right before the call: at least one of them must still be ill. Alerts are
	// those that the decision writes, by fingerprint.
	Signs    []string                      `json:"signs,omitempty"`
	Announce []string                      `json:"announce,omitempty"`
	Withdraw []string                      `json:"withdraw,omitempty"`
	LeftOf   string                        `json:"leftOf,omitempty"`
	Left     []remediations.Undo           `json:"left,omitempty"`
	History  []remediations.Entry          `json:"history,omitempty"`
	Alerts   map[string]remediations.Alert `json:"alerts,omitempty"`
}

func Render(t testing.TB, d lifecycle.Decision) string {
	t.Helper()
	v := VerdictFile{
		Verb: d.Verb, Reason: d.Reason, Message: d.Message, Fleet: d.Fleetwide, Well: d.Well, Cordon: d.Cordon, Uncordon: d.Uncordon,
		Taint: d.Taint, Untaint: d.Untaint, PutBack: d.PutBack, Stop: d.Stop, Allow: d.Allow,
		Record: d.Record, Ended: d.Ended, Relapsed: d.Relapsed, Prune: d.Prune, Consume: d.Consume, Notices: d.Notices, Pause: d.Pause,
		Announce: d.Announce, Withdraw: d.Withdraw, LeftOf: d.LeftOf, Left: d.Left, History: d.History,
	}
	for _, s := range d.Signs {
		v.Signs = append(v.Signs, s.String())
	}
	for _, a := range d.Alerts {
		if v.Alerts == nil {
			v.Alerts = map[string]remediations.Alert{}
		}
		v.Alerts[a.Fingerprint] = a
	}
	if d.Policy != nil {
		v.Policy = d.Policy.Name
	}
	if !d.Recheck.IsZero() {
		v.Recheck = &d.Recheck
	}
	for _, at := range d.Heard {
		if v.WatchdogAt == nil || at.After(*v.WatchdogAt) {
			v.WatchdogAt = &at
		}
	}
	if d.Ask.Alerts {
		v.Ask = append(v.Ask, "alerts")
	}
	if d.Ask.Lease {
		v.Ask = append(v.Ask, "lease")
	}
	if d.Ask.Heartbeats {
		v.Ask = append(v.Ask, "heartbeats")
	}
	if d.Ask.Survey {
		v.Ask = append(v.Ask, "survey of "+d.AskStep.String())
	}
	if d.Ask.Replacement {
		v.Ask = append(v.Ask, "replacement")
	}
	if d.Ask.Witness {
		v.Ask = append(v.Ask, "witness")
	}
	if d.Ask.Observation {
		v.Ask = append(v.Ask, "sighting")
	}
	b, err := yaml.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

type Golden struct {
	Name, Input, output string
}

func Goldens(t testing.TB) []Golden { return GoldensIn(t, "decide") }

func GoldensIn(t testing.TB, folder string) []Golden {
	t.Helper()
	inputs, err := filepath.Glob(filepath.Join("testdata", folder, "*.input.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	var out []Golden
	for _, in := range inputs {
		out = append(out, Golden{
			Name:  strings.TrimSuffix(filepath.Base(in), ".input.yaml"),
			Input: in, output: strings.TrimSuffix(in, ".input.yaml") + ".output.yaml",
		})
	}
	return out
}

func (g Golden) State(t testing.TB) *lifecycle.State {
	t.Helper()
	text, err := os.ReadFile(g.Input)
	require.NoError(t, err)
	return Read(t, text).State(t)
}

func (g Golden) Want(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(g.output)
	require.NoError(t, err, "UPDATE=1 writes it")
	return string(text)
}

// Pin compares the decision about each scene of the folder with its golden file, and checks that it
// is pure: it changes none of its inputs, and a second call returns the same. With UPDATE=1 it
// writes the golden files again. what, if not nil, makes further checks.
func Pin[S, D any](t *testing.T, folder string, read func(Golden, testing.TB) S, decide func(S, time.Time) D, show func(testing.TB, D) string, what func(*testing.T, S, D)) {
	for _, g := range GoldensIn(t, folder) {
		t.Run(g.Name, func(t *testing.T) {
			s := read(g, t)
			d := decide(s, Noon)
			got := show(t, d)
			if os.Getenv("UPDATE") != "" {
				require.NoError(t, os.WriteFile(g.output, []byte(got), 0o644))
			}
			require.Equal(t, g.Want(t), got)
			if what != nil {
				what(t, s, d)
			}
			require.Equal(t, read(g, t), s, "it changes nothing")
			require.Equal(t, got, show(t, decide(s, Noon)), "and repeats itself")
		})
	}
}

// MissedWithoutEachReason removes the guards of one reason at a time, and calls then with the names
// of the golden files whose decisions differ. It reads each scene only once, because decisions do
// not change it (see Pin).
func MissedWithoutEachReason[S any](t *testing.T, read func(Golden, testing.TB) S, decided func(s S, left []lifecycle.Guard) string,
	then func(t *testing.T, gone remediations.Reason, missed []string),
) {
	goldens := Goldens(t)
	states, wanted := make([]S, len(goldens)), make([]string, len(goldens))
	for i, g := range goldens {
		states[i], wanted[i] = read(g, t), g.Want(t)
	}
	WithoutEachReason(t, func(t *testing.T, gone remediations.Reason, left []lifecycle.Guard) {
		var missed []string
		for i, g := range goldens {
			if decided(states[i], left) != wanted[i] {
				missed = append(missed, g.Name)
			}
		}
		then(t, gone, missed)
	})
}

// Readable asserts that Drydock can read the record that the decision writes under the annotation
// key.
func Readable(t *testing.T, key string, d lifecycle.Decision) {
	if d.Record != nil {
		_, err := remediations.DecodeRecordOf(key, d.Record.Encode())
		require.NoError(t, err)
	}
}
