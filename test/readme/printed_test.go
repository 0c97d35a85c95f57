package readme

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/selftest"
	"drydock.dev/drydock/test/admission/requests"
)

// selfTestSays are the messages of the status for each state of a bad connection.
func selfTestSays(t *testing.T) (out []string) {
	t.Helper()
	loaded, _, err := config.Load(filepath.Join(root(t), "internal", "config", "examples", "smallest.yaml"), config.Options{SkipFiles: true})
	require.NoError(t, err)
	now := time.Date(2026, 11, 20, 21, 5, 0, 0, time.UTC)
	alert := func(receivers ...string) []alerts.Alert {
		return []alerts.Alert{{Receivers: receivers}}
	}
	for _, c := range []struct {
		receiver       string
		replica        alerts.Replica
		arrived, posts time.Time
	}{
		{receiver: "drydock"},
		{receiver: "drydock", replica: alerts.Replica{SelfTest: alert("pager"), NoReceiver: true, Akin: []string{"drydock/drydock/drydock"}}},
		{receiver: "drydock/drydock/drydock", replica: alerts.Replica{SelfTest: alert("null")}},
		{receiver: "drydock", replica: alerts.Replica{SelfTest: alert("drydock")}},
		{receiver: "drydock", replica: alerts.Replica{SelfTest: alert("drydock")}, arrived: now.Add(-20 * time.Minute), posts: now},
	} {
		cfg := &remediations.Config{SelfTest: loaded.Core.SelfTest, Receiver: c.receiver}
		var memory selftest.Memory
		var is selftest.Result
		for at := now.Add(-30 * time.Minute); !at.After(now); at = at.Add(15 * time.Second) {
			word := &alerts.Snapshot{AskedAt: at, Replicas: []alerts.Replica{c.replica}}
			memory, is = memory.Judge(cfg, word, c.arrived, selftest.Posts{Refused: c.posts}, is)
			memory.At = at
		}
		require.True(t, is.State.Bad(), "%+v: %s", c, is.State)
		out = append(out, "SelfTest: "+is.Message)
	}
	return out
}

// alike are patterns for texts that differ from one run to the next. They are removed in this
// order, because an ID may look like an age.
var alike = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\s+`), " "},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`^(node-\d+) [a-z2-9]{6} `), "$1 ID "},
	{regexp.MustCompile(`^Cluster \S+ \(\S+\): `), "Cluster: "},
	{regexp.MustCompile(`--context \S+ `), "--context NAME "},
	{regexp.MustCompile(`^drydock \S+_[0-9a-f-]{36} `), "drydock HOLDER "},
	{regexp.MustCompile(`\b(\d+[smhd])+\b`), "AGE"},
}

// like removes from a line what differs in each run.
func like(line string) string {
	line = strings.TrimSpace(line)
	for _, a := range alike {
		line = a.what.ReplaceAllString(line, a.with)
	}
	return line
}

// holdPagesTo compares the pages with what Drydock printed: each line of an output in the pages
// must be among those lines, or in the golden files.
func holdPagesTo(t *testing.T, said []string) {
	t.Helper()
	goldens, err := filepath.Glob(filepath.Join(root(t), "cmd", "kubectl-drydock", "testdata", "*.golden"))
	require.NoError(t, err)
	require.NotEmpty(t, goldens)
	for _, f := range goldens {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		said = append(said, string(text))
	}
	said = append(said, selfTestSays(t)...)
	before := requests.Bare()
	requests.Put(before, requests.Record(remediations.PhaseVerifying))
	after := before.DeepCopy()
	after.Spec.Unschedulable = true
	verdict := admission.Validate(requests.Config(remediations.ModeEnforce), &admission.Change{Old: before, New: after, User: "jane"}, nil, requests.Now)
	require.False(t, verdict.Allowed)
	said = append(said, verdict.Message)

	known := map[string]bool{}
	for _, text := range said {
		for line := range strings.Lines(text) {
			known[like(line)] = true
		}
	}
	for _, name := range []string{troubleshooting, "docs/install.md", upgrade} {
		checked := 0
		text := page(t, name)
		lines := strings.Join(blocks(strings.ReplaceAll(text, "\n  ", "\n"), "console"), "\n")
		if name == troubleshooting {
			lines += "\n" + strings.Join(indented.FindAllString(fence.ReplaceAllString(text, ""), -1), "\n")
		}
		for line := range strings.Lines(lines) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "$ ") {
				continue
			}
			if !known[like(line)] {
				t.Errorf("%s: nobody ever prints\n\t%s", name, line)
			}
			checked++
		}
		require.Positive(t, checked, name)
	}
	if t.Failed() {
		t.Logf("what is printed:\n%s", strings.Join(said, "\n"))
	}
}

var indented = regexp.MustCompile(`(?m)^    \S.*$`)
