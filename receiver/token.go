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

// token is the bearer token of a file. The file itself is read, since a comparison
// of times or sizes can miss a rotation: for every request with another token than
// the last one that was read, so that a new one is good at once, and for others
// once a second, so that an old one is good for no longer than that. In a storm
// reading it each time would be a quarter of what an unchanged alert costs.
//
// When the file cannot be read any more, or is empty, the last good token stays
// valid, and that is logged once: a slip at rotation must not cut off the
// alerts. So a token is revoked by writing another, not by deleting the file.
type token struct {
	path string
	// made gives the token that Drydock made itself, for as long as the file does
	// not have it; empty: none yet. Nil: the file alone counts.
	made func() string
	now  func() time.Time

	mu      sync.Mutex
	known   bool
	digest  [sha256.Size]byte
	readAt  time.Time
	trouble secretfile.Trouble
}

// tokenGood is how long a token is good without a look at its file.
const tokenGood = time.Second

// errNoToken: there is nothing yet that a post's token could be compared with.
var errNoToken = errors.New("the receiver's token has not been made yet")

// newToken fails where no good token is there to begin with, unless Drydock makes it.
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

// missing is errNoToken while no token is known.
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

// current is the digest of the token that is valid now, where one is known. asked is when it is needed.
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

// fresh says whether this is the digest of the token that was in the file less than
// tokenGood ago.
func (t *token) fresh(got [sha256.Size]byte, asked time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return asked.Sub(t.readAt) < tokenGood && subtle.ConstantTimeCompare(t.digest[:], got[:]) == 1
}

// check returns nil if the request carries the token, else why not. Digests are
// compared, in constant time, so that neither the token's bytes nor its length
// can be measured.
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
