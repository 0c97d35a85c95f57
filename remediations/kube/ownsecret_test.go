package kube_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/kube"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// safe is a Secret without data, as the chart creates it, with the replicas that maintain its
// value.
type safe struct {
	cluster *fake.Clientset
	writes  atomic.Int64
	before  func() error // called before each write
}

func newSafe(t *testing.T, data map[string][]byte) *safe {
	t.Helper()
	s := &safe{cluster: fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "drydock", Name: "token"}, Data: data})}
	s.cluster.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		s.writes.Add(1)
		if s.before != nil {
			if err := s.before(); err != nil {
				return true, nil, err
			}
		}
		return false, nil, nil
	})
	return s
}

// replica starts a replica that stops with the test.
func (s *safe) replica(t *testing.T) *kube.OwnSecret {
	t.Helper()
	own := kube.NewOwnSecret(s.cluster, types.NamespacedName{Namespace: "drydock", Name: "token"}, "token", clock.RealClock{}, logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- own.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return own
}

func (s *safe) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	o, err := s.cluster.Tracker().Get(secrets, "drydock", "token") // a reactor may be running, and then the client is locked
	require.NoError(t, err)
	return o.(*corev1.Secret).DeepCopy()
}

func (s *safe) put(t *testing.T, data map[string][]byte) {
	t.Helper()
	secret := s.secret(t)
	secret.Data = data
	require.NoError(t, s.cluster.Tracker().Update(secrets, secret, "drydock"))
}

// TestAnEmptySecretGetsAValueOfItsOwn: the value is long, it differs for each Secret, and it comes
// with the annotation that the chart reads.
func TestAnEmptySecretGetsAValueOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := newSafe(t, nil), newSafe(t, nil)
		own, second := one.replica(t), other.replica(t)
		synctest.Wait()
		require.Len(t, own.Value(), 43, "the agents refuse a key below 32 characters")
		require.Equal(t, own.Value(), string(one.secret(t).Data["token"]))
		require.Equal(t, "true", one.secret(t).Annotations[kube.GeneratedKey])
		require.NotEqual(t, own.Value(), second.Value())
	})
}

// TestAValueThatIsThereIsKept, also if a person writes another value later. The control is the
// empty Secret above.
func TestAValueThatIsThereIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSafe(t, map[string][]byte{"token": []byte("of-helm\n"), "other": []byte("o")})
		own := s.replica(t)
		synctest.Wait()
		require.Equal(t, "of-helm", own.Value())
		s.put(t, map[string][]byte{"token": []byte("of-a-person")})
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, "of-a-person", own.Value())
		require.Zero(t, s.writes.Load())
		require.NotContains(t, s.secret(t).Annotations, kube.GeneratedKey)
	})
}

// TestAValueThatIsRemovedIsWrittenBack unchanged: a sync that replaces the Secret with the rendered
// one must not cut Alertmanager off.
func TestAValueThatIsRemovedIsWrittenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSafe(t, nil)
		own := s.replica(t)
		synctest.Wait()
		first := own.Value()
		s.put(t, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, first, string(s.secret(t).Data["token"]))
		require.Equal(t, first, own.Value())
	})
}

// TestTwoReplicasAgree: the API server accepts one of two simultaneous writes, and the loser uses
// the winner's value.
func TestTwoReplicasAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSafe(t, nil)
		var lost atomic.Bool
		s.before = func() error {
			if lost.CompareAndSwap(false, true) {
				s.put(t, map[string][]byte{"token": []byte("of-the-other-replica")})
				return apierrors.NewConflict(corev1.Resource("secrets"), "token", errors.New("changed"))
			}
			return nil
		}
		own := s.replica(t)
		synctest.Wait()
		require.Empty(t, own.Value(), "a value that the API server did not take is nobody's")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, "of-the-other-replica", own.Value())
		require.EqualValues(t, 1, s.writes.Load())
	})
}

// TestTwoReplicasAgreeOnARealAPIServer, which refuses a write of an older version.
func TestTwoReplicasAgreeOnARealAPIServer(t *testing.T) {
	client := lab.Shared(t).Client()
	name := types.NamespacedName{Namespace: "default", Name: "generated-by-two"}
	_, err := client.CoreV1().Secrets(name.Namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name.Name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	var all []*kube.OwnSecret
	for range 5 {
		own := kube.NewOwnSecret(client, name, "token", clock.RealClock{}, logr.Discard())
		go func() { _ = own.Start(t.Context()) }()
		all = append(all, own)
	}
	require.Eventually(t, func() bool {
		for _, own := range all {
			if own.Value() == "" || own.Value() != all[0].Value() {
				return false
			}
		}
		return true
	}, lab.Patience, 50*time.Millisecond)
	secret, err := client.CoreV1().Secrets(name.Namespace).Get(t.Context(), name.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, all[0].Value(), string(secret.Data["token"]))
}
