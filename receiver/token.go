package receiver

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/go-logr/logr"
)

// token is the bearer token of a file. The file is read for every request: it is
// small, and no comparison of times or sizes can then miss a rotation.
//
// When the file cannot be read any more, or is empty, the last good token stays
// valid, and that is logged once: a slip at rotation must not cut off the
// alerts. So a token is revoked by writing another, not by deleting the file.
type token struct {
	path string

	mu     sync.Mutex
	digest [sha256.Size]byte
	broken string // the last error that was logged
}

// newToken fails where no good token is there to begin with.
func newToken(path string) (*token, error) {
	t := &token{path: path}
	digest, err := t.read()
	if err != nil {
		return nil, err
	}
	t.digest = digest
	return t, nil
}

func (t *token) read() ([sha256.Size]byte, error) {
	f, err := os.Open(t.path)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("reading the receiver's token file: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, maxTokenBytes+1))
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("reading the receiver's token file: %w", err)
	}
	secret := bytes.TrimSpace(content)
	switch {
	case len(secret) == 0:
		return [sha256.Size]byte{}, fmt.Errorf("reading the receiver's token file: %s is empty", t.path)
	case len(content) > maxTokenBytes:
		return [sha256.Size]byte{}, fmt.Errorf("reading the receiver's token file: %s is longer than %d bytes", t.path, maxTokenBytes)
	}
	return sha256.Sum256(secret), nil
}

// current is the digest of the token that is valid now.
func (t *token) current(log logr.Logger) [sha256.Size]byte {
	digest, err := t.read()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.digest, t.broken = digest, ""
	} else if err.Error() != t.broken {
		t.broken = err.Error()
		log.Error(err, "the receiver's token file is unusable; the last good token stays valid")
	}
	return t.digest
}

// check returns nil if the request carries the token, else why not. Digests are
// compared, in constant time, so that neither the token's bytes nor its length
// can be measured.
func (t *token) check(h http.Header, log logr.Logger) error {
	scheme, given, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || given == "" {
		return errors.New("a bearer token is needed in the Authorization header")
	}
	want, got := t.current(log), sha256.Sum256([]byte(strings.TrimSpace(given)))
	if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
		return errors.New("the bearer token is not the right one")
	}
	return nil
}
