package statefile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/rescue/apiserver"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

var still = clocktesting.NewFakePassiveClock(noon)

// pending returns an entry with a rescue that has only an id.
func pending(id string) apiserver.RescueEntry {
	return apiserver.RescueEntry{Rescue: &apiserver.Rescue{
		V: 1, ID: id, Policy: "apiserver-down", Cause: remediations.Cause{Alert: "aa"}, Phase: remediations.PhasePending, Began: noon, Since: noon, Deadline: noon.Add(time.Hour),
	}}
}

func ended(id string) apiserver.RescueEntry {
	return apiserver.RescueEntry{Ended: &apiserver.EndedRescue{
		Entry: remediations.Entry{ID: id, Policy: "apiserver-down", Outcome: remediations.OutcomeCancelled, Steps: remediations.Attempts{}, Began: noon, Ended: noon, Why: "a \"quoted\" <why> \u2028"},
	}}
}

func mustOpen(t *testing.T, dir string) *File {
	t.Helper()
	f, err := Open(dir, still)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func load(t testing.TB, f *File) apiserver.RescueJournal {
	t.Helper()
	j, err := f.Load()
	require.NoError(t, err)
	return j
}

func rescueID(j apiserver.RescueJournal) string {
	if j.Rescue == nil {
		return ""
	}
	return j.Rescue.ID
}

func TestWhatWasAppendedIsThereAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	f := mustOpen(t, dir)
	require.Empty(t, load(t, f))
	require.NoError(t, f.Append(pending("r1")))
	require.NoError(t, f.Append(ended("r1"), pending("r2")))
	was := load(t, f)
	require.NoError(t, f.Close())
	for range 3 { // each start rewrites it
		f = mustOpen(t, dir)
		require.Equal(t, was, load(t, f))
		require.Empty(t, f.Torn())
		require.NoError(t, f.Close())
	}
	info, err := os.Stat(filepath.Join(dir, Name))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "what hosts said is nobody else's")
}

// TestTornAtEveryByte cuts the last line at each of its bytes. The line is dropped, and all lines
// before it stay.
func TestTornAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	f := mustOpen(t, dir)
	path := filepath.Join(dir, Name)
	require.NoError(t, f.Append(pending("r1")))
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, f.Append(ended("r1"), pending("r2")))
	require.NoError(t, f.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for cut := len(before); cut <= len(whole); cut++ {
		for _, lost := range []string{"cut", "zeros behind", "zeros before"} {
			text := append([]byte{}, whole[:cut]...)
			switch lost {
			case "zeros behind": // the length reached the disk, the end did not
				text = append(text, make([]byte, len(whole)-cut)...)
			case "zeros before": // the end reached the disk, and the part before it did not
				text = append(append(append([]byte{}, before...), make([]byte, cut-len(before))...), whole[cut:]...)
			}
			c, err := decode(text)
			require.NoError(t, err, "%s at %d", lost, cut)
			if got := rescueID(c.journal); string(text) == string(whole) {
				require.Equal(t, "r2", got)
			} else {
				require.Equal(t, "r1", got, "%s at %d", lost, cut)
				require.Equal(t, len(text) > len(before), c.torn != "", "it is said: %s at %d", lost, cut)
			}
		}
	}
	// And the real journal continues after it.
	require.NoError(t, os.WriteFile(path, whole[:len(whole)-1], 0o600))
	f = mustOpen(t, dir)
	require.Contains(t, f.Torn(), "line 2")
	require.NoError(t, f.Append(pending("r3")))
	require.NoError(t, f.Close())
	require.Equal(t, "r3", rescueID(load(t, mustOpen(t, dir))))
}

// TestNonsenseHoldsUntilItIsSetAside: content that no crash can leave is not a journal. Drydock
// neither adds to such a file nor removes anything from it.
func TestNonsenseHoldsUntilItIsSetAside(t *testing.T) {
	dir := t.TempDir()
	f := mustOpen(t, dir)
	for _, id := range []string{"r1", "r2", "r3"} {
		require.NoError(t, f.Append(pending(id)))
	}
	require.NoError(t, f.Close())
	path := filepath.Join(dir, Name)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.SplitAfter(strings.TrimSuffix(string(good), "\n"), "\n")
	for name, text := range map[string]string{
		"a line is missing":        lines[0] + lines[2] + "\n",
		"lines changed places":     lines[1] + lines[0] + lines[2] + "\n",
		"a line twice":             lines[0] + lines[0],
		"an earlier line was cut":  lines[0][:20] + "\n" + lines[1],
		"a letter was changed":     strings.Replace(string(good), `"r3"`, `"r4"`, 1),
		"another version":          strings.Replace(string(good), `"v":1,"seq"`, `"v":2,"seq"`, 1),
		"something follows":        lines[0][:len(lines[0])-1] + "{}\n",
		"an entry nobody wrote":    string(line(1, []apiserver.RescueEntry{{}})),
		"a part nobody knows":      strings.Replace(lines[0], `"v":1,"seq"`, `"x":1,"v":1,"seq"`, 1),
		"no journal at all":        "hello\n",
		"zeros before the last":    lines[0] + "\x00\x00\n" + lines[1],
		"longer than any journal":  strings.Repeat(" ", maxRead+1),
		"zeros and no end of line": "", // control: set below
	} {
		t.Run(name, func(t *testing.T) {
			if text == "" {
				text = string(good) + "\x00\x00"
			}
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			f := mustOpen(t, dir)
			defer f.Close()
			j := load(t, f)
			if name == "zeros and no end of line" {
				require.NoError(t, j.Malformed)
				return
			}
			require.Error(t, j.Malformed)
			require.Nil(t, j.Rescue)
			require.Error(t, f.Append(pending("r9")))
			left, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, text, string(left), "it is left as it is")
			require.NoError(t, f.Renew())
			require.NoError(t, load(t, f).Malformed)
			require.NoError(t, f.Append(pending("r9")))
			require.NoError(t, f.Renew(), "one that can be read stays")
			require.Equal(t, "r9", rescueID(load(t, f)))
			aside, err := filepath.Glob(path + ".malformed-*")
			require.NoError(t, err)
			require.Len(t, aside, 1)
			kept, err := os.ReadFile(aside[0])
			require.NoError(t, err)
			require.Equal(t, text, string(kept))
			require.NoError(t, os.Remove(aside[0]))
		})
	}
}

// TestOneProcessOnly: a second process on the directory is refused. The directory is free when the
// first process has ended for any reason.
func TestOneProcessOnly(t *testing.T) {
	dir := t.TempDir()
	if os.Getenv("STATEFILE_HOLD") != "" {
		file, err := Open(os.Getenv("STATEFILE_HOLD"), still)
		fmt.Println("open:", err)
		<-make(chan struct{})   // until it is killed
		runtime.KeepAlive(file) // a collected file gives its lock back
	}
	f := mustOpen(t, dir)
	_, err := Open(dir, still)
	require.ErrorIs(t, err, errLocked)
	require.ErrorContains(t, err, dir)
	require.NoError(t, f.Close())

	other := exec.Command(os.Args[0], "-test.run=^TestOneProcessOnly$")
	other.Env = append(os.Environ(), "STATEFILE_HOLD="+dir)
	out, err := other.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())
	said := make([]byte, 64)
	n, err := out.Read(said)
	require.NoError(t, err)
	require.Equal(t, "open: <nil>", strings.TrimSpace(string(said[:n])))
	_, err = Open(dir, still)
	require.ErrorIs(t, err, errLocked)
	require.NoError(t, other.Process.Signal(syscall.SIGKILL))
	_ = other.Wait()
	mustOpen(t, dir)
}

func TestPeoplesFiles(t *testing.T) {
	dir := t.TempDir()
	f := mustOpen(t, dir)
	require.Nil(t, load(t, f).Paused)
	require.False(t, load(t, f).Reset)
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write(Paused, "racks")
	write(Reset, "")
	j := load(t, f)
	require.Equal(t, "racks", *j.Paused)
	require.True(t, j.Reset)
	require.NoError(t, f.Answered())
	require.NoError(t, f.Answered(), "twice is no fault")
	require.False(t, load(t, f).Reset)
	write(Paused, strings.Repeat("x", 1<<20))
	require.Len(t, *load(t, f).Paused, maxPaused)
	require.NoError(t, os.Remove(filepath.Join(dir, Paused)))
	require.Nil(t, load(t, f).Paused)
	require.NoError(t, os.Mkdir(filepath.Join(dir, Paused), 0o700))
	require.Contains(t, *load(t, f).Paused, "cannot be read", "somebody meant something by it")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, Reset, "full"), 0o700))
	require.Error(t, f.Answered(), "what cannot be taken away is not answered")
}

// TestARemovedJournal: Drydock does not write into a file that it will not read again.
func TestARemovedJournal(t *testing.T) {
	dir := t.TempDir()
	f := mustOpen(t, dir)
	require.NoError(t, f.Append(ended("r1"), pending("r2")))
	for _, how := range []func(string) error{os.Remove, func(p string) error { return os.Rename(p, p+".bak") }} {
		require.NoError(t, how(filepath.Join(dir, Name)))
		require.ErrorContains(t, f.Append(pending("r3")), "replaced or removed")
		require.Equal(t, "r2", rescueID(load(t, f)))
		require.NoError(t, f.Append(pending("r2")), "it is written anew")
	}
	require.NoError(t, f.Close())
	require.Len(t, load(t, mustOpen(t, dir)).Ended, 1)
}

// TestLongUseKeepsItShort: a hold that changes for weeks does not fill the disk.
func TestLongUseKeepsItShort(t *testing.T) {
	m := newModel()
	f, err := open("d", still, m)
	require.NoError(t, err)
	long := pending("r1")
	long.Rescue.Hold = &remediations.Hold{Reason: remediations.ReasonSilenced, Message: strings.Repeat("x", 100<<10), Since: noon}
	most := 0
	for range 100 {
		require.NoError(t, f.Append(long))
		most = max(most, len(m.names["d/"+Name].text))
	}
	require.Less(t, most, maxBytes+200<<10)
}

// TestEveryLineReadsAsItWasWritten uses random texts with every character that JSON may escape.
func TestEveryLineReadsAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := ended("r1")
		e.Ended.Why = rapid.String().Draw(t, "why")
		first := e.Encode()
		es, seq, err := decodeLine(line(7, []apiserver.RescueEntry{e, pending("r2")}))
		require.NoError(t, err)
		require.Equal(t, uint64(7), seq)
		require.Equal(t, first, es[0].Encode())
	})
}

// FuzzJournal: any content of the file is read or refused. Content that was read gives the same
// journal again from its shortest form.
func FuzzJournal(f *testing.F) {
	f.Add(append(line(3, []apiserver.RescueEntry{ended("r1"), pending("r2")}), line(4, []apiserver.RescueEntry{{Reset: true}})...))
	f.Add([]byte("{}\n"))
	f.Add(line(1, nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := decode(text)
		if err != nil {
			require.Empty(t, c.journal)
			return
		}
		var short []byte
		for i, e := range c.journal.Entries() {
			short = append(short, line(uint64(i+1), []apiserver.RescueEntry{e})...)
		}
		again, err := decode(short)
		require.NoError(t, err)
		require.Empty(t, again.torn)
		require.Len(t, again.journal.Entries(), len(c.journal.Entries()))
	})
}
