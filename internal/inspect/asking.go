package inspect

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Asking says what the API server would not do. A Node that is not there is said as such.
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

// notThere is the error of a Node that is not there. Its sentence is enough: the API server's would repeat it.
type notThere struct {
	node string
	err  error
}

func (e notThere) Error() string { return fmt.Sprintf("there is no node %q in this cluster", e.node) }

func (e notThere) Unwrap() error { return e.err }

// Sentence says an error as a person would. What the API server says is kept whole: it names the user, the right that is
// missing, or the admission that denied.
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

// host is the part of a URL that tells people which cluster it is.
func host(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}
