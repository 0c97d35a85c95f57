package inspect

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Asking turns an error of the API server into a sentence for people. A missing Node has a message
// of its own.
func Asking(err error, doing, node string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && node != "":
		return notThere{node, err}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot patch resource"):
		return fmt.Errorf("%s was refused: %w; the ClusterRole RELEASE-operator of Drydock's chart has that right", doing, err)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("%s was refused: %w", doing, err)
	}
	return fmt.Errorf("%s failed: %w", doing, err)
}

// notThere is the error for a missing Node. It leaves out the API server's text, which would repeat
// the sentence.
type notThere struct {
	node string
	err  error
}

func (e notThere) Error() string { return fmt.Sprintf("there is no node %q in this cluster", e.node) }

func (e notThere) Unwrap() error { return e.err }

// Sentence returns an error as a sentence for people. It keeps the API server's text whole: the
// text names the user, the missing right, or the admission that denied the request.
func Sentence(err error) string {
	var status apierrors.APIStatus
	var unreachable *url.Error
	switch {
	case errors.As(err, &status):
		return err.Error()
	case errors.As(err, &unreachable):
		return fmt.Sprintf("the cluster cannot be reached at %s: %v", host(unreachable.URL), unreachable.Err)
	}
	return err.Error()
}

// host returns the host of a URL, so that people recognise the cluster.
func host(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}
