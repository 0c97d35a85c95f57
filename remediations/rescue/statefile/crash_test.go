package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/rescue/apiserver"
)

// model is a disk that loses unsynced data when the machine dies. It may lose any part of a file's
// text since the file's last sync, and any changes of the directory since the directory's last
// sync.
type model struct {
	names map[string]*modelFile
	// durable is the directory at its last sync. since are the changes after that sync.
	durable map[string]*modelFile
	since   []func(map[string]*modelFile)
	// left is the number of operations before the machine dies. If it is negative, the machine does
	// not die. fail is the number of the operation that returns an error.
	left, fail int
	locked     bool
}

type modelFile struct {
	disk   *model
	text   []byte
	synced int
}

var errDied = errors.New("the machine died")

func newModel() *model {
	return &model{names: map[string]*modelFile{}, durable: map[string]*modelFile{}, left: -1, fail: -1}
}

// step counts one operation. half is true if the machine dies in the middle of this operation.
func (m *model) step() (half bool, err error) {
	if m.fail == 0 {
		m.fail--
		return false, errors.New("input/output error")
	}
	m.fail--
	switch {
	case m.left < 0:
		return false, nil
	case m.left == 0:
		return false, errDied
	}
	m.left--
	return m.left == 0, nil
}

func (m *model) change(f func(map[string]*modelFile)) {
	f(m.names)
	m.since = append(m.since, f)
}

func (m *model) MkdirAll(string) error { return nil }

func (m *model) Lock(string) (func() error, error) {
	if m.locked {
		return nil, errLocked
	}
	m.locked = true
	return func() error { m.locked = false; return nil }, nil
}

func (m *model) ReadFile(path string) ([]byte, error) {
	f := m.names[path]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(f.text), nil
}

func (m *model) Exists(path string) bool { return m.names[path] != nil }

func (m *model) Create(path string) (file, error) {
	if _, err := m.step(); err != nil {
		return nil, err
	}
	f := &modelFile{disk: m}
	m.change(func(names map[string]*modelFile) { names[path] = f })
	return f, nil
}

func (m *model) Rename(from, to string) error {
	if _, err := m.step(); err != nil {
		return err
	}
	m.change(func(names map[string]*modelFile) {
		if f := names[from]; f != nil {
			names[to] = f
			delete(names, from)
		}
	})
	return nil
}

func (m *model) Remove(path string) error {
	if _, err := m.step(); err != nil {
		return err
	}
	m.change(func(names map[string]*modelFile) { delete(names, path) })
	return nil
}

func (m *model) SyncDir(string) error {
	if _, err := m.step(); err != nil {
		return err
	}
	m.durable, m.since = maps.Clone(m.names), nil
	return nil
}

func (m *model) Same(f file, path string) bool { return f != nil && m.names[path] == f }

// Append counts as two operations: the write and the sync.
func (f *modelFile) Append(text []byte) error {
	half, err := f.disk.step()
	if err != nil {
		return err
	}
	if half {
		f.text = append(f.text, text[:len(text)/2]...)
		return errDied
	}
	f.text = append(f.text, text...)
	if _, err := f.disk.step(); err != nil {
		return err
	}
	f.synced = len(f.text)
	return nil
}

func (f *modelFile) Close() error { return nil }

// fates returns the possible states of the disk if the machine dies now. Any number of the
// directory's last changes is lost. Of each file's unsynced text, all, nothing, half, or zeros
// remain.
func (m *model) fates() map[string]*model {
	out := map[string]*model{}
	for kept := range len(m.since) + 1 {
		for _, text := range []string{"all", "nothing", "half", "zeros", "zeros and its end"} {
			names := maps.Clone(m.durable)
			for _, f := range m.since[:kept] {
				f(names)
			}
			after := newModel()
			for path, f := range names {
				lost := len(f.text) - f.synced
				got := slices.Clone(f.text)
				switch {
				case lost == 0:
				case text == "nothing":
					got = got[:f.synced]
				case text == "half":
					got = got[:f.synced+lost/2]
				case text == "zeros":
					clear(got[f.synced:])
				case text == "zeros and its end":
					clear(got[f.synced : len(got)-1])
				}
				after.names[path] = &modelFile{disk: after, text: got, synced: len(got)}
			}
			after.durable = maps.Clone(after.names)
			out[fmt.Sprintf("%d changes of the directory kept, of the text %s", kept, text)] = after
		}
	}
	return out
}

// use opens a journal and appends to it until the machine dies. It returns the ids that Append
// reported as durable, and the id of the Append in progress.
func use(m *model, from int) (durable []string, last string) {
	f, err := open("d", still, m)
	if err != nil {
		return nil, ""
	}
	for i := range 4 {
		last = fmt.Sprintf("e%d", from+i)
		if err := f.Append(ended(last)); errors.Is(err, errDied) {
			return durable, last
		} else if err == nil {
			durable = append(durable, last)
		}
	}
	return durable, ""
}

func ids(j apiserver.RescueJournal) (out []string) {
	for _, e := range slices.Backward(j.Ended) {
		out = append(out, e.ID)
	}
	return out
}

// TestMachineThatDiesAtEveryStep: whatever the disk had not written yet, the journal then has
// exactly the entries that Append reported as durable, in order. A machine that dies again during
// the recovery loses nothing either.
func TestMachineThatDiesAtEveryStep(t *testing.T) {
	deaths := 0
	for at := 1; at < 16; at++ {
		m := newModel()
		m.left = at
		durable, last := use(m, 0)
		for fate, after := range m.fates() {
			deaths++
			f, err := open("d", still, after)
			require.NoError(t, err)
			j := load(t, f)
			require.NoError(t, j.Malformed, "after %d: %s", at, fate)
			found := ids(j)
			require.True(t, slices.Equal(found, durable) || slices.Equal(found, append(slices.Clone(durable), last)), "after %d, %s: durable were %v and perhaps %s, found were %v", at, fate, durable, last, found)
			for again := 1; again < 8; again++ {
				second := copyOf(after)
				second.left = again
				more, then := use(second, 10)
				want := append(slices.Clone(found), more...)
				for fate, after := range second.fates() {
					f, err := open("d", still, after)
					require.NoError(t, err)
					j := load(t, f)
					require.NoError(t, j.Malformed, "after %d and %d: %s", at, again, fate)
					found := ids(j)
					require.True(t, slices.Equal(found, want) || slices.Equal(found, append(slices.Clone(want), then)), "after %d and %d, %s: %v, %v %s", at, again, fate, found, want, then)
				}
			}
		}
	}
	require.GreaterOrEqual(t, deaths, 100)
}

func copyOf(m *model) *model {
	c := newModel()
	for path, f := range m.names {
		c.names[path] = &modelFile{disk: c, text: slices.Clone(f.text), synced: f.synced}
	}
	c.durable = maps.Clone(c.names)
	return c
}

// TestDiskThatFailsAtEveryStep: an entry whose Append failed is not durable, and later entries are.
func TestDiskThatFailsAtEveryStep(t *testing.T) {
	for at := range 20 {
		m := newModel()
		f, err := open("d", still, m)
		require.NoError(t, err)
		m.fail = at
		var durable []string
		perhaps := ""
		for i := range 6 {
			id := fmt.Sprintf("e%d", i)
			if perhaps = id; f.Append(ended(id)) == nil {
				durable, perhaps = append(durable, id), ""
			}
		}
		require.GreaterOrEqual(t, len(durable), 5)
		require.Equal(t, durable, ids(load(t, f)))
		for fate, after := range m.fates() {
			f, err := open("d", still, after)
			require.NoError(t, err)
			found := ids(load(t, f))
			require.True(t, slices.Equal(durable, found) || slices.Equal(append(slices.Clone(durable), perhaps), found), "failed at %d: %s: %v of %v", at, fate, found, durable)
		}
	}
}

// TestDirectoryThatCannotBeWritten: Open reports it at once. Otherwise people would learn about it
// only when the control plane is down.
func TestDirectoryThatCannotBeWritten(t *testing.T) {
	for at := range 5 {
		m := newModel()
		m.fail = at
		_, err := open("d", still, m)
		require.Error(t, err, at)
		require.False(t, m.locked, "and the directory is given back")
	}
	m := newModel()
	m.names[filepath.Join("d", Name)] = &modelFile{disk: m, text: []byte("nonsense\n")}
	f, err := open("d", still, m)
	require.NoError(t, err)
	m.fail = 0
	require.Error(t, f.Renew())
	require.Error(t, load(t, f).Malformed)
	require.NoError(t, f.Renew())
	m.fail = 0
	require.Error(t, f.Answered())
}
