package receiver

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"drydock.dev/drydock/internal/secretfile"
)

// token is the bearer token of a file. The file's content is read, because a comparison of times or
// sizes can miss a rotation. A request with another token than the last one read causes a read, so
// a new token is valid at once. Otherwise the file is read once a second, so an old token is valid
// no longer than that. In a storm, a read for each request would be a quarter of the cost of an
// unchanged alert.
//
// If the file becomes unreadable or empty, the last valid token stays valid, and that is logged
// once: a mistake in a rotation must not cut off the alerts. So a token is revoked by writing
// another, not by deleting the file.
type token struct {
	path string
	// made returns the token that Drydock generated, until the file has it; empty: not generated
	// yet. Nil: only the file counts.
	made func() string
	now  func() time.Time

	mu      sync.Mutex
	known   bool
	digest  [sha256.Size]byte
	readAt  time.Time
	trouble secretfile.Trouble
}

// tokenGood is how long a token is valid without a read of its file.
const tokenGood = time.Second

// errNoToken: there is no token yet to compare a post's token with.
var errNoToken = errors.New("the receiver's token has not been made yet")

// newToken fails without a valid token at the start, unless Drydock generates it.
func newToken(path string, made func() string) (*token, error) {
	t := &token{path: path, made: made, now: time.Now}
	digest, err := t.read()
	switch {
	case err == nil:
		t.digest, t.known = digest, true
	case made == nil:
		return nil, err
	}
	return t, nil
}

func (t *token) read() ([sha256.Size]byte, error) {
	secret, err := secretfile.Token("the receiver's token file", t.path, maxTokenBytes)
	if err != nil && t.made != nil {
		if made := t.made(); made != "" {
			secret, err = made, nil
		}
	}
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256([]byte(secret)), nil
}

// missing returns errNoToken while no token is known.
func (t *token) missing(log logr.Logger) error {
	t.mu.Lock()
	known := t.known
	t.mu.Unlock()
	if !known {
		_, known = t.current(t.now(), log)
	}
	if !known {
		return errNoToken
	}
	return nil
}

// current returns the digest of the valid token, if one is known. asked is the time of the request.
func (t *token) current(asked time.Time, log logr.Logger) (valid [sha256.Size]byte, known bool) {
	digest, err := t.read()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known {
		t.trouble.Log(log, err, "the receiver's token file is unusable; the last good token stays valid")
	}
	if err == nil {
		t.digest, t.readAt, t.known = digest, asked, true
	}
	return t.digest, t.known
}

// fresh reports whether this digest is of the token that the file had less than tokenGood ago.
func (t *token) fresh(got [sha256.Size]byte, asked time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return asked.Sub(t.readAt) < tokenGood && subtle.ConstantTimeCompare(t.digest[:], got[:]) == 1
}

// check returns nil if the request has the token, otherwise an error. It compares digests in
// constant time, so that neither the token's bytes nor its length can be measured.
func (t *token) check(h http.Header, log logr.Logger) error {
	scheme, given, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || given == "" {
		return errors.New("a bearer token is needed in the Authorization header")
	}
	got, asked := sha256.Sum256([]byte(strings.TrimSpace(given))), t.now()
	if t.fresh(got, asked) {
		return nil
	}
	want, known := t.current(asked, log)
	if !known {
		return errNoToken
	}
	if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
		return errors.New("the bearer token is not the right one")
	}
	return nil
}
