package statefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// disk has only the operations that the journal needs. Tests use one that loses unsynced data.
type disk interface {
	MkdirAll(dir string) error
	// Lock lasts until unlock is called, or until this process ends. It returns errLocked if
	// another process has the lock.
	Lock(path string) (unlock func() error, err error)
	// ReadFile returns an error for a file that is longer than maxRead.
	ReadFile(path string) ([]byte, error)
	Exists(path string) bool
	Create(path string) (file, error)
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(dir string) error
	// Same reports whether f is still the file at the path: another program may have replaced or
	// removed it.
	Same(f file, path string) bool
}

// file is a file that is open for appending.
type file interface {
	// Append writes the whole text, which is durable unless it returns an error.
	Append(text []byte) error
	Close() error
}

// In bytes. No file of Drydock is that long.
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
			return nil, fmt.Errorf("%w: another process has the lock on %s. Each replica needs a directory of its own", errLocked, path)
		}
		return nil, err
	}
	return f.Close, nil
}

func (realDisk) ReadFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // so that a named pipe at the path does not block
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
