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

// These are the time limits of a write. Each is longer than the one before, so that the side that
// waits longer learns the result.
const (
	// ServerWithin is how long the API server may work on a write.
	ServerWithin = 30 * time.Second
	// AnswerWithin is how long the caller waits for the API server's answer.
	AnswerWithin = ServerWithin + 5*time.Second
	// readWithin bounds the read of the Node after the answer was lost.
	readWithin = 5 * time.Second
)

// Unknown is the error of a write whose result is unknown.
type Unknown struct{ why string }

func (e Unknown) Error() string { return e.why }

// settle finds out the result of a write that ended with err: refused, written on the Node, or
// unknown.
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
	found := "the node was read again and does not show it"
	if unread != nil {
		found = "the node could not be read again: " + inspect.Sentence(unread)
	}
	return nil, Unknown{fmt.Sprintf("it is unknown whether the change was written: %s; %s. Wait %s, then look at the node, and repeat the change only if the node does not show it: `kubectl drydock why %s`",
		inspect.Sentence(inspect.Asking(err, doing, node)), found, text.Duration(ServerWithin), node)}
}

// saying adds how it is known that the write was done.
func (w *Writer) saying(said string) string {
	if !w.lost || said == "" {
		return said
	}
	return said + " The API server's answer was lost; the node was read again and shows it."
}

// has reports whether the Node has the annotations that were to be written.
func has(n *corev1.Node, a annotations) bool {
	for key, want := range a {
		value, there := n.Annotations[key]
		if there != (want != nil) || there && want != value {
			return false
		}
	}
	return true
}

// Refused reports that the write was certainly not done: the API server refused it, or the request
// never arrived.
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

// Once sends each write at most once and bounds how long the API server works on it. Without it,
// the client repeats a write that was answered with Retry-After, seconds after a person decided.
func Once(next http.RoundTripper) http.RoundTripper { return once{next} }

type once struct{ next http.RoundTripper }

func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPatch {
		return o.next.RoundTrip(r) //nolint:wrapcheck // in the words of the transport
	}
	r = r.Clone(r.Context())
	q := r.URL.Query()
	q.Set("timeout", ServerWithin.String())
	r.URL.RawQuery = q.Encode()
	res, err := o.next.RoundTrip(r)
	if err == nil {
		res.Header.Del("Retry-After")
	}
	return res, err //nolint:wrapcheck // in the words of the transport
}
