package statefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// disk is what the journal needs of a file system; a test has one that forgets what was not synced.
type disk interface {
	MkdirAll(dir string) error
	// Lock gives ErrLocked where another process has it. It holds until unlock, or until this process ends.
	Lock(path string) (unlock func() error, err error)
	// ReadFile gives at most so much as a journal may be long.
	ReadFile(path string) ([]byte, error)
	Exists(path string) bool
	Create(path string) (file, error)
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(dir string) error
	// Same says that the open file is the one at the path.
	Same(f file, path string) bool
}

// file is open for appending.
type file interface {
	// Append writes all of it and has it durable when it returns without an error.
	Append(text []byte) error
	Close() error
}

// maxRead is what is read of one file: far more than one of Drydock's can be long.
const maxRead = 4 * maxBytes

type realDisk struct{}

func (realDisk) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o700) }

func (realDisk) Lock(path string) (func() error, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: it holds the lock on %s. Each replica needs a directory of its own", ErrLocked, path)
		}
		return nil, err
	}
	return f.Close, nil
}

func (realDisk) ReadFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe of that name must not keep us waiting
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRead+1))
	if err == nil && len(text) > maxRead {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxRead)
	}
	return text, err
}

func (realDisk) Exists(path string) bool { _, err := os.Lstat(path); return err == nil }

func (realDisk) Create(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return realFile{f}, nil
}

func (realDisk) Rename(from, to string) error { return os.Rename(from, to) }
func (realDisk) Remove(path string) error     { return os.Remove(path) }

func (realDisk) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func (realDisk) Same(f file, path string) bool {
	open, ok := f.(realFile)
	if !ok {
		return false
	}
	a, errA := open.Stat()
	b, errB := os.Lstat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

type realFile struct{ *os.File }

func (f realFile) Append(text []byte) error {
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Sync()
}
