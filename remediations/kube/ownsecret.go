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

// GeneratedKey is an annotation of a Secret with a value that Drydock generated; the chart reads
// it. Without it, the value is from an older chart, which must repeat it at each upgrade, because
// Helm would otherwise remove it.
const GeneratedKey = "drydock.dev/generated"

const (
	// If a person has removed the value, the same value is then written again.
	ownSecretEvery = time.Minute
	// After a failed attempt.
	ownSecretAgain   = 2 * time.Second
	ownSecretTimeout = 5 * time.Second
	// Before its encoding.
	ownSecretBytes = 32
)

// OwnSecret generates a random value and writes it into a Secret that already exists. All replicas
// do so: the API server accepts the first write, and the others use that value. It never changes a
// value that is in the Secret. It is a manager.Runnable.
type OwnSecret struct {
	client kubernetes.Interface
	secret types.NamespacedName
	key    string
	clock  clock.Clock
	log    logr.Logger

	mu    sync.Mutex
	value string
}

// NewOwnSecret returns the OwnSecret for that data key of the Secret.
func NewOwnSecret(client kubernetes.Interface, secret types.NamespacedName, key string, c clock.Clock, log logr.Logger) *OwnSecret {
	return &OwnSecret{client: client, secret: secret, key: key, clock: c, log: log}
}

// Value returns the value that was last read or written, or "".
func (s *OwnSecret) Value() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value
}

// NeedLeaderElection returns false, because each replica needs the value.
func (*OwnSecret) NeedLeaderElection() bool { return false }

// Start reads the Secret again and again until ctx ends, and writes the value whenever the Secret
// has none.
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
				s.log.Error(err, "the value in the Secret could not be read or written; Drydock tries again", "secret", s.secret.String(), "after", next.String())
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.clock.After(next):
		}
	}
}

// If the Secret has no value, keep writes the one that this process has used, or a new one.
func (s *OwnSecret) keep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ownSecretTimeout)
	defer cancel()
	secrets := s.client.CoreV1().Secrets(s.secret.Namespace)
	secret, err := secrets.Get(ctx, s.secret.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Secret %s, which the chart creates: %w", s.secret, err)
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
		return fmt.Errorf("writing key %s of Secret %s: %w", s.key, s.secret, err)
	}
	s.value = value
	s.log.Info("generated the missing value and wrote it into the Secret", "secret", s.secret.String(), "key", s.key)
	return nil
}

// 256 random bits. All characters are valid in an HTTP header and in a file.
func generate() string {
	var b [ownSecretBytes]byte
	_, _ = rand.Read(b[:]) // rand.Read never returns an error: if it fails, the program ends
	return base64.RawURLEncoding.EncodeToString(b[:])
}
