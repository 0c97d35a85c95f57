package actions

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/remediations"
)

// server is an API server with one Node, whose answers to a PATCH may be lost.
type server struct {
	mu   sync.Mutex
	node corev1.Node
	// patches are the queries of those that arrived.
	patches []string
	// does decides whether a PATCH is done, and how it is answered. If it is nil, the server does as
	// usual.
	does func(w http.ResponseWriter) (done, answered bool)
	// unread: the Node cannot be read.
	unread bool
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPatch:
		s.patches = append(s.patches, r.URL.RawQuery)
		body, _ := io.ReadAll(r.Body)
		done, answered := true, false
		if s.does != nil {
			done, answered = s.does(w)
		}
		var change struct {
			Metadata struct {
				UID         types.UID
				Annotations map[string]*string
			}
		}
		_ = json.Unmarshal(body, &change)
		if uid := change.Metadata.UID; uid != "" && uid != s.node.UID {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: 422, Message: "metadata.uid: Invalid value: field is immutable"})
			return
		}
		for k, v := range change.Metadata.Annotations {
			if done && v != nil {
				s.node.Annotations[k] = *v
			} else if done {
				delete(s.node.Annotations, k)
			}
		}
		if answered {
			return
		}
	case s.unread:
		panic(http.ErrAbortHandler)
	}
	_ = json.NewEncoder(w).Encode(s.node)
}

func (s *server) writer(t *testing.T) *Writer {
	t.Helper()
	at := httptest.NewServer(s)
	t.Cleanup(at.Close)
	config := &rest.Config{Host: at.URL}
	config.Wrap(Once)
	client, err := corev1client.NewForConfig(config)
	require.NoError(t, err)
	return &Writer{Client: client}
}

func newServer(record *remediations.Record) *server {
	s := &server{node: corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u1", ResourceVersion: "1", Annotations: map[string]string{}}}}
	s.record(record)
	return s
}

func (s *server) record(r *remediations.Record) {
	delete(s.node.Annotations, remediations.NodeRepairKey)
	if r != nil {
		s.node.Annotations[remediations.NodeRepairKey] = r.Encode()
	}
}

func repair(id string, phase remediations.Phase) *remediations.Record {
	at := time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC)
	r := &remediations.Record{
		V: 1, ID: id, Policy: "p", Cause: remediations.Cause{Alert: "9f2c0e5b6d1a4c33"}, Phase: phase, Step: remediations.StepRef{Name: "reboot", Attempt: 1}, Began: at, Since: at,
		Deadline: at.Add(time.Hour),
	}
	switch phase {
	case remediations.PhaseVerifying:
		r.Intent = &remediations.Intent{ID: id + "-0-1", At: at, Outcome: remediations.CallAccepted}
		r.Done = remediations.Attempts{{Name: "reboot", Number: 1}}
	case remediations.PhaseExhausted:
		r.Deadline, r.Done = time.Time{}, remediations.Attempts{{Name: "reboot", Number: 1}}
	case remediations.PhasePending, remediations.PhaseActing:
	}
	return r
}

// cut ends the connection without an answer.
func cut(w http.ResponseWriter) {
	if h, is := w.(http.Hijacker); is {
		if c, _, err := h.Hijack(); err == nil {
			_ = c.Close()
		}
	}
}

func unavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1") // the client itself would send the write again
	w.WriteHeader(http.StatusServiceUnavailable)
}

// TestAWriteWhoseAnswerIsLostIsLookedFor: it is reported as written if the Node has it, otherwise
// as unknown, and never as refused. It is sent once.
func TestAWriteWhoseAnswerIsLostIsLookedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does    func(w http.ResponseWriter) (done, answered bool)
		unread  bool
		written bool
		says    string
	}{
		"answered":              {written: true, says: "Repair aaaaaa of n is approved"},
		"done, and cut":         {does: func(w http.ResponseWriter) (bool, bool) { cut(w); return true, true }, written: true, says: "The API server's answer was lost; the node was read again and shows the change."},
		"not done, and cut":     {does: func(w http.ResponseWriter) (bool, bool) { cut(w); return false, true }, says: "the node was read again and does not show the change"},
		"done, and unavailable": {does: func(w http.ResponseWriter) (bool, bool) { unavailable(w); return true, true }, written: true, says: "The API server's answer was lost; the node was read again and shows the change."},
		"not done, unavailable": {does: func(w http.ResponseWriter) (bool, bool) { unavailable(w); return false, true }, says: "the node was read again and does not show the change"},
		"not known":             {does: func(w http.ResponseWriter) (bool, bool) { unavailable(w); return true, true }, unread: true, says: "the node could not be read again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(repair("aaaaaa", remediations.PhasePending))
			w := s.writer(t)
			s.does = c.does
			if c.unread {
				s.does = func(w http.ResponseWriter) (bool, bool) { s.unread = true; return c.does(w) }
			}
			prepared, err := Approve().Prepare(nil, time.Time{})
			require.NoError(t, err)
			said, err := prepared.Apply(t.Context(), w, "n")
			require.Len(t, s.patches, 1, "one asking is one write")
			require.Contains(t, s.patches[0], "timeout=30s", "the API server gives up before its answer is not waited for any more")
			if c.written {
				require.NoError(t, err)
				require.Contains(t, said, c.says)
				return
			}
			require.ErrorAs(t, err, &Unknown{})
			require.Contains(t, err.Error(), "it is unknown whether the change was written: ")
			require.Contains(t, err.Error(), c.says)
			require.Contains(t, err.Error(), "`kubectl drydock why n`")
		})
	}
}

// TestALateAnswerIsNotWaitedForLonger than the time that a write has.
func TestALateAnswerIsNotWaitedForLonger(t *testing.T) {
	t.Parallel()
	s := newServer(nil)
	late := make(chan struct{})
	first := true
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch && first {
			first = false
			<-late
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(at.Close)
	t.Cleanup(func() { close(late) })
	client, err := corev1client.NewForConfig(&rest.Config{Host: at.URL})
	require.NoError(t, err)
	prepared, err := Pause().Prepare(nil, time.Time{})
	require.NoError(t, err)
	_, err = prepared.Apply(t.Context(), &Writer{Client: client, Within: 50 * time.Millisecond}, "n")
	require.ErrorAs(t, err, &Unknown{})
	require.Less(t, ServerWithin, AnswerWithin)
}

// TestAWriteNeedsTheSubjectOfItsDryRun: the same repair of the same Node. The same write without a
// change between is the control.
func TestAWriteNeedsTheSubjectOfItsDryRun(t *testing.T) {
	t.Parallel()
	for word, phase := range map[string]remediations.Phase{"reset": remediations.PhaseExhausted, "approve": remediations.PhasePending, "cancel": remediations.PhaseVerifying, "pause": "", "break-glass": ""} {
		for name, c := range map[string]struct {
			between func(*server)
			refused string
		}{
			"the same":       {func(*server) {}, ""},
			"another repair": {func(s *server) { s.record(repair("bbbbbb", phase)) }, "the command would now concern bbbbbb instead of aaaaaa"},
			"another Node":   {func(s *server) { s.node.UID = "u2" }, "nothing was written, because node n was deleted and registered again"},
		} {
			if phase == "" && name == "another repair" {
				continue // these are about the node
			}
			t.Run(word+" "+name, func(t *testing.T) {
				t.Parallel()
				var r *remediations.Record
				if phase != "" {
					r = repair("aaaaaa", phase)
				}
				s := newServer(r)
				w := s.writer(t)
				given := Params{}
				if word == "break-glass" {
					given["why"] = "now"
				}
				prepared, err := Named(word).Prepare(given, time.Time{})
				require.NoError(t, err)
				w.DryRun = true
				s.does = func(http.ResponseWriter) (bool, bool) { return false, false }
				_, err = prepared.Apply(t.Context(), w, "n")
				require.NoError(t, err)
				tried := w.Of()
				require.Equal(t, types.UID("u1"), tried.UID)

				s.does = nil
				c.between(s)
				before := len(s.node.Annotations)
				_, err = prepared.Apply(t.Context(), &Writer{Client: w.Client, Tried: &tried}, "n")
				if c.refused == "" {
					require.NoError(t, err)
					require.Len(t, s.node.Annotations, before+1)
					return
				}
				require.ErrorContains(t, err, c.refused)
				require.Len(t, s.node.Annotations, before, "nothing was written")
			})
		}
	}
}
