package inspect

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Asking returns an error of the API server as a sentence for people. doing names the failed
// action.
func Asking(err error, doing, node string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && node != "":
		return notThere{node, err}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot patch resource"):
		return fmt.Errorf("%s was refused: %w; the ClusterRole RELEASE-operator of Drydock's chart has that right: ask an administrator to bind it", doing, err)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("%s was refused: %w", doing, err)
	}
	return fmt.Errorf("%s failed: %w", doing, err)
}

type notThere struct {
	node string
	err  error
}

func (e notThere) Error() string { return fmt.Sprintf("there is no node %q in this cluster", e.node) }

func (e notThere) Unwrap() error { return e.err }

// Sentence returns an error as a sentence. It keeps the API server's whole text, which names the
// user, the missing right, or the admission plugin that denied the request.
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

// host leaves out the user and the password. It returns an address unchanged if it is not a URL.
func host(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}
