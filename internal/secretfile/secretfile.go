// Package secretfile reads files with tokens, keys and certificates. People and mounts may write
// these files at any time, and a configuration may have the path of a wrong file. So the size of a
// read is limited, a read never waits for a pipe, and no error contains the content.
package secretfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
)

// ErrNotRegular means that the path is that of a pipe or a device.
var ErrNotRegular = errors.New("the path is not a regular file")

// TooLong is the error of a file that is longer than this number of bytes.
type TooLong int

func (most TooLong) Error() string { return fmt.Sprintf("the file is longer than %d bytes", int(most)) }

// Read returns the content of a regular file. The largest allowed size, most, is in bytes. Read
// follows symbolic links, because a mounted Secret is one. what describes the file in errors, for
// example "the receiver's token file".
func Read(what, path string, most int) ([]byte, error) {
	if path == "" {
		return nil, fmt.Errorf("%s is not configured", what)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // O_NONBLOCK: do not wait if the path is a pipe
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err) // err has the path
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", what, err)
	case !info.Mode().IsRegular() && !info.IsDir(): // reading a directory fails below with a clear error
		return nil, fmt.Errorf("reading %s %s: %w", what, path, ErrNotRegular)
	}
	content, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", what, err)
	case len(content) > most:
		return nil, fmt.Errorf("reading %s %s: %w", what, path, TooLong(most))
	}
	return content, nil
}

// Token returns the file's content without surrounding white space, which editors and shells add.
// An empty file is an error.
func Token(what, path string, most int) (string, error) {
	content, err := Read(what, path, most)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return "", fmt.Errorf("reading %s %s: the file is empty", what, path)
	}
	return token, nil
}

// Trouble logs the error of a repeated read only once. It is for readers that continue with the
// last valid content after a wrong file was written. The caller must hold a lock.
type Trouble struct{ logged string }

// Log logs the error of a read if it differs from the last one. After a nil error, the next error
// is logged again.
func (t *Trouble) Log(log logr.Logger, err error, message string) {
	switch {
	case err == nil:
		t.logged = ""
	case err.Error() != t.logged:
		t.logged = err.Error()
		log.Error(err, message)
	}
}
