package apiserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// noon is when each scene is.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// fp is the fingerprint of the scenes' alert.
const fp = "8b2d1f0c3a4e5d67"

type golden struct{ name, input, output string }

func goldens(t testing.TB) (out []golden) {
	t.Helper()
	inputs, err := filepath.Glob("testdata/decide/*.input.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	for _, in := range inputs {
		stem := strings.TrimSuffix(in, ".input.yaml")
		out = append(out, golden{name: filepath.Base(stem), input: in, output: stem + ".output.yaml"})
	}
	return out
}

func (g golden) want(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(g.output)
	require.NoError(t, err, "UPDATE=1 writes it")
	return string(text)
}

// pin holds the decision about each scene to its golden. It is pure: it changes nothing, and repeats itself. UPDATE=1 rewrites the
// outputs: read the difference before you keep it.
func pin(t *testing.T, read func(golden, testing.TB) *State, what func(*testing.T, Decision)) {
	for _, g := range goldens(t) {
		t.Run(g.name, func(t *testing.T) {
			s := read(g, t)
			d := Decide(s, noon)
			got := renderRescue(t, d)
			if os.Getenv("UPDATE") != "" {
				require.NoError(t, os.WriteFile(g.output, []byte(got), 0o644))
			}
			require.Equal(t, g.want(t), got)
			what(t, d)
			require.Equal(t, read(g, t), s, "it changes nothing")
			require.Equal(t, got, renderRescue(t, Decide(s, noon)), "and repeats itself")
		})
	}
}

// TestEveryOutputHasAnInput: an output whose input was renamed pins nothing.
func TestEveryOutputHasAnInput(t *testing.T) {
	outputs, err := filepath.Glob("testdata/decide/*.output.yaml")
	require.NoError(t, err)
	require.Len(t, outputs, len(goldens(t)))
}

var nowPattern = regexp.MustCompile(`<now([+-][0-9a-z]+)?>`)

// moments writes the times out that a scene gives from now.
func moments(t testing.TB, text []byte) []byte {
	t.Helper()
	return nowPattern.ReplaceAllFunc(text, func(m []byte) []byte {
		at := noon
		if sub := nowPattern.FindSubmatch(m)[1]; len(sub) > 0 {
			d, err := time.ParseDuration(string(sub))
			require.NoError(t, err)
			at = at.Add(d)
		}
		return []byte(at.Format(time.RFC3339))
	})
}

func ago(text, otherwise string) time.Time { return noon.Add(-span(text, otherwise)) }

func span(text, otherwise string) time.Duration {
	if text == "" {
		text = otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// sceneConfig is a configuration that has a policy of nodes alone.
func sceneConfig(t testing.TB, repairsPerNode int, windows []string) *remediations.Config {
	m, err := labels.NewMatcher(labels.MatchEqual, "remediation", "node-not-ready")
	require.NoError(t, err)
	c := &remediations.Config{
		Kinds:  []*remediations.TargetKind{&Kind},
		Limits: remediations.Limits{RepairsPerNode: max(repairsPerNode, 1), RepairsWindow: 24 * time.Hour},
		Mode:   remediations.ModeEnforce, MaxStaleness: 30 * time.Second, Watchdog: true, Provided: map[string]bool{"reboot": true},
		Policies: []*remediations.Policy{{
			Name: "node-not-ready", Match: labels.Matchers{m}, Labels: []string{"node"}, Mode: remediations.ModeEnforce,
			Plan: []remediations.Step{{Name: "reboot", Wait: 10 * time.Minute, Attempts: 2}},
		}},
	}
	for _, w := range windows {
		var from, to remediations.WallTime
		_, err := fmt.Sscanf(w, "%d:%d-%d:%d", &from.Hour, &from.Minute, &to.Hour, &to.Minute)
		require.NoError(t, err)
		c.Windows = append(c.Windows, remediations.Window{From: from, To: to, Location: time.UTC})
	}
	return c
}

type sceneLimits struct {
	RepairsPerNode int `json:"repairsPerNode"`
}

type sceneAlert struct {
	Fingerprint string `json:"fingerprint"`
	Status      string `json:"status"`
	Received    string `json:"received"` // how long ago
	Started     string `json:"started"`  // how long ago
}

type sceneWord struct {
	Never          bool           `json:"never"`
	Age            string         `json:"age"`
	WatchdogMisses int            `json:"watchdogMisses"`
	Replicas       []sceneReplica `json:"replicas"`
}

type sceneReplica struct {
	Err        string `json:"err"`
	NoWatchdog bool   `json:"noWatchdog"`
	BlindBy    string `json:"blindBy"`
	// Alert is what the replica has: active, silenced, inhibited, muted, unprocessed, absent.
	Alert string `json:"alert"`
	// Silences are those that silence it, as "id author comment end".
	Silences []string `json:"silences"`
}

func (w sceneWord) word() *remediations.Word {
	if w.Never {
		return nil
	}
	out := &remediations.Word{AskedAt: ago(w.Age, "2s"), WatchdogMisses: w.WatchdogMisses}
	replicas := w.Replicas
	if replicas == nil {
		replicas = []sceneReplica{{}, {}}
	}
	for i, r := range replicas {
		out.Replicas = append(out.Replicas, r.word(i))
	}
	return out
}

func (r sceneReplica) word(i int) remediations.ReplicaWord {
	url := fmt.Sprintf("http://alertmanager-%d", i)
	if r.Err != "" {
		return remediations.ReplicaWord{URL: url, Err: errors.New(r.Err)}
	}
	rw := remediations.ReplicaWord{URL: url, Watchdog: !r.NoWatchdog, BlindBy: r.BlindBy, WatchdogAt: ago("20s", ""), Alerts: map[string]remediations.AlertWord{}}
	a := remediations.AlertWord{Labels: map[string]string{}, StartsAt: noon.Add(-10 * time.Minute), UpdatedAt: ago("20s", "")}
	a.EndsAt = a.UpdatedAt.Add(4 * time.Minute)
	switch r.Alert {
	case "", "active":
		a.Active = true
	case "silenced":
		a.SilencedBy = []string{"maintenance"}
		if r.Silences != nil {
			a.SilencedBy = nil
		}
		rw.Silences = map[string]remediations.Silence{}
		for _, text := range r.Silences {
			var id, end string
			var of remediations.Silence
			if n, _ := fmt.Sscan(text, &id, &of.Author, &of.Comment, &end); n == 4 {
				of.EndsAt = noon.Add(span(end, ""))
				rw.Silences[id] = of
			}
			a.SilencedBy = append(a.SilencedBy, id)
		}
	case "muted":
		a.MutedBy = []string{"nights"}
	case "unprocessed":
	case "inhibited":
		a.InhibitedBy = []string{"1234"}
	case "absent":
		return rw
	default:
		panic(r.Alert)
	}
	rw.Alerts[fp] = a
	return rw
}
