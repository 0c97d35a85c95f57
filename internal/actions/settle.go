package actions

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/internal/text"
)

// The caller waits longer than the API server may work, so that the result reaches the caller.
const (
	// ServerWithin is how long the API server may work on a write.
	ServerWithin = 30 * time.Second
	// AnswerWithin is how long the caller waits for the API server's answer.
	AnswerWithin = ServerWithin + 5*time.Second
	// readWithin bounds the read of the Node after the answer to a write was lost.
	readWithin = 5 * time.Second
)

// Unknown is the error of a write whose result is unknown.
type Unknown struct{ why string }

func (e Unknown) Error() string { return e.why }

// settle finds out whether a write that failed with err was done. If the API server certainly did
// not write, it returns err as a sentence. Otherwise it reads the Node, and returns an Unknown
// unless the Node shows the change.
func (w *Writer) settle(ctx context.Context, node, doing string, a annotations, err error) (*corev1.Node, error) {
	if w.DryRun || Refused(err) {
		return nil, inspect.Asking(err, doing, node)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readWithin)
	defer cancel()
	n, unread := w.Client.Nodes().Get(ctx, node, metav1.GetOptions{})
	if unread == nil && (w.Tried == nil || w.Tried.UID == "" || w.Tried.UID == n.UID) && has(n, a) {
		w.lost, w.of.UID = true, n.UID
		return n, nil
	}
	found := "the node was read again and does not show the change"
	if unread != nil {
		found = "the node could not be read again: " + inspect.Sentence(unread)
	}
	return nil, Unknown{fmt.Sprintf("it is unknown whether the change was written: %s; %s. Wait %s, then check the node with `kubectl drydock why %s`, and repeat the command only if the node does not show the change",
		inspect.Sentence(inspect.Asking(err, doing, node)), found, text.Duration(ServerWithin), node)}
}

// saying adds that the Node was read again and shows the change, if the API server's answer was
// lost.
func (w *Writer) saying(said string) string {
	if !w.lost || said == "" {
		return said
	}
	return said + " The API server's answer was lost; the node was read again and shows the change."
}

func has(n *corev1.Node, a annotations) bool {
	for key, want := range a {
		value, there := n.Annotations[key]
		if there != (want != nil) || there && want != value {
			return false
		}
	}
	return true
}

// Refused reports whether the write was certainly not done: the API server refused it, or the
// request did not reach it.
func Refused(err error) bool {
	var dial *net.OpError
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		code := int(status.Status().Code)
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout ||
			apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
	case errors.As(err, &dial):
		return dial.Op == "dial"
	}
	return false
}

// Once returns a transport that sends each write only once and limits how long the API server works
// on it. client-go alone repeats a write if the answer has a Retry-After header. The write would
// then come seconds after the person's decision.
func Once(next http.RoundTripper) http.RoundTripper { return once{next} }

type once struct{ next http.RoundTripper }

func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPatch {
		return o.next.RoundTrip(r) //nolint:wrapcheck // a transport passes errors on unchanged
	}
	r = r.Clone(r.Context())
	q := r.URL.Query()
	q.Set("timeout", ServerWithin.String())
	r.URL.RawQuery = q.Encode()
	res, err := o.next.RoundTrip(r)
	if err == nil {
		res.Header.Del("Retry-After")
	}
	return res, err //nolint:wrapcheck // a transport passes errors on unchanged
}
