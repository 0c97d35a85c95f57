// Package statefile stores the journal of rescues in a directory on this machine, because no API
// server may be available. A rescue is a repair of the API servers.
//
// The journal is an append-only file of JSON lines. Each line is durable before Append returns, so
// an intent is in the journal after any crash. People make requests with two files in the same
// directory: paused and reset.
package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations/rescue/apiserver"
)

// These are the names of files in the state directory.
const (
	// Name is the name of the journal's file.
	Name = "apiserver.jsonl"
	// Paused is a file that a person creates: while it exists, nothing is restarted. Its content
	// has the form of drydock.dev/pause, or is a plain reason. A pause with an end applies until
	// then.
	Paused = "paused"
	// Reset is a file that a person creates, to forget the exhausted rescue or to rename the
	// unreadable journal. Drydock then removes the file.
	Reset = "reset"

	lockName = "lock"
	newName  = Name + ".new"
)

// If the file is longer, in bytes, Append rewrites it in its shortest form. One rescue takes a few
// kilobytes, so this happens only if the reason of a hold changes for weeks.
const maxBytes = 4 << 20

// The operating system releases the lock when the other process ends, for any reason.
var errLocked = errors.New("another Drydock uses the state directory")

// File is the journal in the state directory. Only one goroutine may write to it, while others
// read.
type File struct {
	dir   string
	disk  disk
	clock clock.PassiveClock
	lock  func() error

	mu   sync.Mutex
	out  file
	size int
	seq  uint64
	// An Append failed, so the end of the file after the last good line is unknown.
	suspect bool
	journal apiserver.RescueJournal
	// The last line of the file if a crash cut it off, which read has dropped.
	torn string
}

// Open locks the directory and reads the journal. An unreadable journal is reported by Load, and
// stays unchanged until Renew.
func Open(dir string, c clock.PassiveClock) (*File, error) { return open(dir, c, realDisk{}) }

func open(dir string, c clock.PassiveClock, d disk) (*File, error) {
	if err := d.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	unlock, err := d.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("locking the state directory %s: %w", dir, err)
	}
	f := &File{dir: dir, disk: d, clock: c, lock: unlock}
	if err := f.read(); err != nil {
		_ = unlock()
		return nil, err
	}
	return f, nil
}

// read also rewrites the journal in its shortest form, unless the journal is unreadable.
func (f *File) read() error {
	text, err := f.disk.ReadFile(f.path(Name))
	var found contents
	if err == nil {
		found, err = decode(text)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.journal = apiserver.RescueJournal{Malformed: fmt.Errorf("%s: %w", f.path(Name), err)}
		return nil
	}
	f.journal, f.seq, f.torn = found.journal, found.seq, found.torn
	return f.compact()
}

// Torn describes the last line of the journal if a crash cut it off, so that it was dropped.
func (f *File) Torn() string { return f.torn }

// Load returns the journal, and the files paused and reset, which people create.
func (f *File) Load() (apiserver.RescueJournal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.journal
	text, err := f.disk.ReadFile(f.path(Paused))
	switch {
	case err == nil:
		said := string(text[:min(len(text), maxPaused)])
		j.Paused = &said
	case !errors.Is(err, fs.ErrNotExist):
		said := fmt.Sprintf("the file cannot be read: %v", err) // a person has created the file, so a pause is wanted
		j.Paused = &said
	}
	j.Reset = f.disk.Exists(f.path(Reset))
	return j, nil
}

// In bytes.
const maxPaused = 1 << 10

// Append makes all entries durable, or none. After an error it is unknown which, so the caller must
// not act on them. The next Append first rewrites the journal without them.
func (f *File) Append(entries ...apiserver.RescueEntry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.journal.Malformed != nil:
		return fmt.Errorf("nothing is added to an unreadable journal: %w", f.journal.Malformed)
	case f.suspect || f.size > maxBytes:
		if err := f.compact(); err != nil {
			return err
		}
	}
	if !f.disk.Same(f.out, f.path(Name)) {
		f.suspect = true
		return fmt.Errorf("another program replaced or removed %s; Drydock writes the file again", f.path(Name))
	}
	text, next := line(f.seq+1, entries), f.journal
	for _, e := range entries {
		next = next.With(e)
	}
	if err := f.out.Append(text); err != nil {
		f.suspect = true
		return fmt.Errorf("writing the journal: %w", err)
	}
	f.seq, f.size, f.journal = f.seq+1, f.size+len(text), next
	return nil
}

// Renew renames an unreadable journal, and starts a new one.
func (f *File) Renew() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.journal.Malformed == nil {
		return nil
	}
	aside := fmt.Sprintf("%s.malformed-%s", Name, f.clock.Now().UTC().Format("20060102T150405.000000000"))
	if err := f.disk.Rename(f.path(Name), f.path(aside)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("renaming the unreadable journal: %w", err)
	}
	f.journal, f.seq = apiserver.RescueJournal{}, 0
	return f.compact()
}

// Answered removes the file reset, and makes the removal durable.
func (f *File) Answered() error {
	if err := f.disk.Remove(f.path(Reset)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", f.path(Reset), err)
	}
	return f.disk.SyncDir(f.dir)
}

// The old file is replaced once the new one is durable.
func (f *File) compact() error {
	if f.out != nil {
		_ = f.out.Close()
		f.out = nil
	}
	f.suspect = true // until the new file is complete
	var text []byte
	seq := f.seq
	for _, e := range f.journal.Entries() {
		seq++
		text = append(text, line(seq, []apiserver.RescueEntry{e})...)
	}
	out, err := f.disk.Create(f.path(newName))
	if err != nil {
		return fmt.Errorf("writing the journal again: %w", err)
	}
	if err := out.Append(text); err != nil {
		_ = out.Close()
		return fmt.Errorf("writing the journal again: %w", err)
	}
	if err := f.disk.Rename(f.path(newName), f.path(Name)); err != nil {
		_ = out.Close()
		return fmt.Errorf("writing the journal again: %w", err)
	}
	f.out = out
	if err := f.disk.SyncDir(f.dir); err != nil {
		return fmt.Errorf("writing the journal again: %w", err)
	}
	f.seq, f.size, f.suspect = seq, len(text), false
	return nil
}

// Close releases the lock on the state directory.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.out != nil {
		_ = f.out.Close()
		f.out = nil
	}
	return f.lock()
}

func (f *File) path(name string) string { return filepath.Join(f.dir, name) }
