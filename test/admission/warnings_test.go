package admission

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/lab"
)

// warned is a client that keeps the warnings of the API server.
type warned struct {
	kubernetes.Interface
	warnings
}

func newWarned(t *testing.T, l *lab.Lab, user string, groups ...string) *warned {
	t.Helper()
	h := &warned{}
	config := l.ConfigAs(user, groups...)
	config.WarningHandler = h
	var err error
	h.Interface, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return h
}

// checked makes the request. It repeats the request if the webhook reports that it could not check
// a right, because the API server had only one second to answer.
func (h *warned) checked(ask func() error) error {
	for end := time.Now().Add(lab.Patience); ; {
		h.forget()
		err := ask()
		if !strings.Contains(fmt.Sprint(err, h.texts()), "could not be checked") || time.Now().After(end) {
			return err
		}
	}
}

// warnings collects the warnings that the API server sends.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

func (w *warnings) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = nil
}

func (w *warnings) count() int { return len(w.texts()) }

func (w *warnings) texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}
