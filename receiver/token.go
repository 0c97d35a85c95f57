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

// token is the bearer token in a file. Each check reads the file's content, because a comparison of
// modification times or sizes can miss a rotation. There is one exception: a token that Drydock
// read from the file less than tokenGood ago is accepted without another read. So a new token is
// valid as soon as it is written, and an old token is valid for at most one more second. The
// exception saves time in a storm of posts: a read of the file for each post would cost a quarter
// of the handling of an unchanged alert.
//
// If the file becomes unreadable or empty, the last valid token stays valid, and Drydock logs this
// once: a mistake in a rotation must not cut off the alerts. To revoke a token, write another one
// into the file. A deletion of the file does not revoke the token.
type token struct {
	path string
	// The token that Drydock generated, valid only while the file has none, or "" before that. If
	// it is nil, only the file counts.
	made func() string
	now  func() time.Time

	mu      sync.Mutex
	known   bool
	digest  [sha256.Size]byte
	readAt  time.Time
	trouble secretfile.Trouble
}

// How long a token is accepted without another read of its file.
const tokenGood = time.Second

// Drydock has not generated the token yet, so no post can be checked.
var errNoToken = errors.New("the receiver's token has not been made yet")

// Without a valid token in the file, newToken fails if made is nil, and otherwise uses the token
// that Drydock generates.
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

// If the read fails, current returns the digest of the last valid token. known is false if there
// was none. asked is the time of the request.
func (t *token) current(asked time.Time, log logr.Logger) (valid [sha256.Size]byte, known bool) {
	digest, err := t.read()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known {
		t.trouble.Log(log, err, "the receiver's token file is unusable; the last valid token stays valid")
	}
	if err == nil {
		t.digest, t.readAt, t.known = digest, asked, true
	}
	return t.digest, t.known
}

// got is the digest of the known token, which was read from the file less than tokenGood before
// asked.
func (t *token) fresh(got [sha256.Size]byte, asked time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return asked.Sub(t.readAt) < tokenGood && subtle.ConstantTimeCompare(t.digest[:], got[:]) == 1
}

// check compares digests in constant time, so that a client can measure neither the token's bytes
// nor its length.
func (t *token) check(h http.Header, log logr.Logger) error {
	scheme, given, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || given == "" {
		return errors.New("the Authorization header must have a bearer token")
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
		return errors.New("the bearer token is wrong")
	}
	return nil
}
