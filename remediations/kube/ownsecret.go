package kube

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// GeneratedKey is the annotation of a Secret whose value Drydock generated. The chart reads it.
// Without this annotation an older chart generated the value, and the chart must name it at each
// upgrade, because Helm would otherwise remove it.
const GeneratedKey = "drydock.dev/generated"

const (
	// ownSecretEvery is how often the Secret is read, so that a value that was removed is written
	// back.
	ownSecretEvery = time.Minute
	// ownSecretAgain is the wait before a failed attempt is repeated.
	ownSecretAgain = 2 * time.Second
	// ownSecretTimeout bounds one attempt.
	ownSecretTimeout = 5 * time.Second
	// ownSecretBytes is the length of a generated value before its encoding.
	ownSecretBytes = 32
)

// OwnSecret is a value that Drydock generates in a Secret that exists already, like the webhook's
// certificate. All replicas do the same: the API server accepts the first write, and the others use
// that value. A value that is in the Secret is never changed. OwnSecret is a manager.Runnable.
type OwnSecret struct {
	client kubernetes.Interface
	secret types.NamespacedName
	key    string
	clock  clock.Clock
	log    logr.Logger

	mu    sync.Mutex
	value string
}

// NewOwnSecret makes the OwnSecret of that key of the Secret.
func NewOwnSecret(client kubernetes.Interface, secret types.NamespacedName, key string, c clock.Clock, log logr.Logger) *OwnSecret {
	return &OwnSecret{client: client, secret: secret, key: key, clock: c, log: log}
}

// Value returns the value that was last read or written; empty: nothing yet.
func (s *OwnSecret) Value() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value
}

// NeedLeaderElection returns false: each replica needs the value.
func (*OwnSecret) NeedLeaderElection() bool { return false }

// Start keeps the value until ctx ends.
func (s *OwnSecret) Start(ctx context.Context) error {
	for failed := ""; ; {
		next := ownSecretEvery
		err := s.keep(ctx)
		switch {
		case err == nil:
			failed = ""
		case ctx.Err() == nil: // else the wait below ends at once
			next = ownSecretAgain
			if err.Error() != failed {
				failed = err.Error()
				s.log.Error(err, "the Secret is not kept; trying again", "secret", s.secret.String(), "after", next.String())
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.clock.After(next):
		}
	}
}

// keep reads the value, or writes one if there is none: the one that this process knows, else a new
// one.
func (s *OwnSecret) keep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ownSecretTimeout)
	defer cancel()
	secrets := s.client.CoreV1().Secrets(s.secret.Namespace)
	secret, err := secrets.Get(ctx, s.secret.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the Secret %s, which the chart makes: %w", s.secret, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if there := strings.TrimSpace(string(secret.Data[s.key])); there != "" {
		s.value = there
		return nil
	}
	value := s.value
	if value == "" {
		value = generate()
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[s.key] = []byte(value)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, GeneratedKey, "true")
	if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: "drydock"}); err != nil {
		return fmt.Errorf("writing the key %s of the Secret %s: %w", s.key, s.secret, err)
	}
	s.value = value
	s.log.Info("wrote a value into the Secret, which had none", "secret", s.secret.String(), "key", s.key)
	return nil
}

// generate returns a value of 256 random bits, in characters that are valid in a header and a file.
func generate() string {
	var b [ownSecretBytes]byte
	_, _ = rand.Read(b[:]) // never returns an error: on failure the program ends
	return base64.RawURLEncoding.EncodeToString(b[:])
}
