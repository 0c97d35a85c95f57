package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// A locked file in the folder shows that the lab is alive: the lock ends with the lab's process.
type folder struct {
	dir       string
	temporary bool

	mu   sync.Mutex
	lock *os.File
	keep bool
}

const (
	lockName = ".lock"
	keepName = ".keep"
)

// It first removes the folders of killed labs, because each takes about a hundred megabytes.
func openFolder(dir string) (*folder, error) {
	f := &folder{dir: dir, temporary: dir == ""}
	var err error
	if f.temporary {
		RemoveOrphans()
		f.dir, err = os.MkdirTemp("", "drydock-lab-")
	} else if f.dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(f.dir, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("making the lab's folder: %w", err)
	}
	f.lock, err = os.OpenFile(filepath.Join(f.dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making the lock of the lab's folder: %w", err)
	}
	if err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.lock.Close()
		return nil, fmt.Errorf("locking the lab's folder %s, which another lab may be using: %w", f.dir, err)
	}
	// An earlier lab may have used the folder. This lab must start without its files.
	for _, old := range []string{f.dataDir(), f.LogDir()} {
		if err := os.RemoveAll(old); err != nil {
			return nil, fmt.Errorf("emptying the lab's folder: %w", err)
		}
	}
	return f, nil
}

// RemoveOrphans removes the folders of killed labs. A folder without a lock file may belong to a
// lab that is starting, so it stays.
func RemoveOrphans() {
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), "drydock-lab-*", lockName)) // the pattern is valid
	for _, path := range locks {
		dir := filepath.Dir(path)
		if _, err := os.Stat(filepath.Join(dir, keepName)); err == nil {
			continue
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue // the folder belongs to another user
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir) // the next lab tries again
		}
		f.Close()
	}
}

// Keep makes Stop leave the folder with the logs.
func (f *folder) Keep() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keep = true
}

// Dir returns the path of the lab's folder. Tests may also write to it.
func (f *folder) Dir() string { return f.dir }

// LogDir returns the folder with the logs. Each part has one file with its name.
func (f *folder) LogDir() string { return filepath.Join(f.dir, "logs") }

// A later lab does not need this folder.
func (f *folder) dataDir() string { return filepath.Join(f.dir, "data") }

func (f *folder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock == nil {
		return
	}
	switch {
	case f.temporary && f.keep:
		_ = os.WriteFile(filepath.Join(f.dir, keepName), nil, 0o600) // at worst a later lab removes it
	case f.temporary:
		_ = os.RemoveAll(f.dir) // at worst a later lab removes it
	}
	f.lock.Close()
	f.lock = nil
}
