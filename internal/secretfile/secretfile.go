// Package secretfile reads files with tokens, keys and certificates. People and mounts write these
// files at any time, and a configuration may name the wrong file. So a read is bounded, never waits
// for a pipe, and no error quotes the content.
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

// ErrNotRegular says that the path names a pipe or a device.
var ErrNotRegular = errors.New("it is not a regular file")

// TooLong is the error of a file that is longer than this many bytes.
type TooLong int

func (most TooLong) Error() string { return fmt.Sprintf("it is longer than %d bytes", int(most)) }

// Read returns the content of a regular file of at most most bytes. It follows a symbolic link:
// that is how a mounted Secret is updated. what is the name in errors, for example "the receiver's
// token file".
func Read(what, path string, most int) ([]byte, error) {
	if path == "" {
		return nil, fmt.Errorf("%s is not named", what)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // must not wait for a pipe of that name
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err) // names the path
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", what, err)
	case !info.Mode().IsRegular() && !info.IsDir(): // reading a directory fails by itself, with a clear error
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
		return "", fmt.Errorf("reading %s %s: it is empty", what, path)
	}
	return token, nil
}

// Trouble is for files that are read repeatedly: it logs a new error once, not at each read. A
// reader that keeps the last good content survives a mistake in a rotation, and logs it. The
// owner's lock guards it.
type Trouble struct{ logged string }

// Log takes the result of a read. A nil error ends the trouble.
func (t *Trouble) Log(log logr.Logger, err error, message string) {
	switch {
	case err == nil:
		t.logged = ""
	case err.Error() != t.logged:
		t.logged = err.Error()
		log.Error(err, message)
	}
}
