// Package secretfile reads the files that hold tokens, keys and certificates. People and mounts write these files at any time,
// and a configuration may name the wrong file: a read is bounded, never waits for a pipe, and no error quotes what is in the
// file.
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

// TooLong says that the file is longer than so many bytes.
type TooLong int

func (most TooLong) Error() string { return fmt.Sprintf("it is longer than %d bytes", int(most)) }

// Read returns the content of a regular file of at most so many bytes. A symbolic link is followed: that is how a mounted Secret
// is written anew. what is how the error calls the file, such as "the receiver's token file".
func Read(what, path string, most int) ([]byte, error) {
	if path == "" {
		return nil, fmt.Errorf("%s is not named", what)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe of that name must not keep us waiting
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err) // names the path
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", what, err)
	case !info.Mode().IsRegular() && !info.IsDir(): // reading a directory fails by itself, with a clear word
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

// Token returns what is in the file without the white space around it, which editors and shells add. An empty file is an error.
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

// Trouble is for files that are read again and again: it logs an error when it is new, and not at each reading. A reader that
// keeps the last good content goes on through a slip at rotation, and says so. Its owner's lock guards it.
type Trouble struct{ logged string }

// Log takes the outcome of a reading. A nil error ends the trouble.
func (t *Trouble) Log(log logr.Logger, err error, message string) {
	switch {
	case err == nil:
		t.logged = ""
	case err.Error() != t.logged:
		t.logged = err.Error()
		log.Error(err, message)
	}
}
