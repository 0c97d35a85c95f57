package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/text"
)

// command says a sentence for each thing that was refused.
var command = cli.Program{Name: "kubectl drydock", Lines: func(err error) []string {
	var several refusals
	if !errors.As(err, &several) {
		several = refusals{err}
	}
	lines := make([]string, len(several))
	for i, e := range several {
		lines[i] = "error: " + plain(sentence(e))
	}
	return lines
}}

// refusals are those of several nodes.
type refusals []error

func (r refusals) Error() string { return errors.Join(r...).Error() }

// sentence says an error as a person would. What the API server says is kept whole: it names the user, the right that is
// missing, or the admission that denied.
func sentence(err error) string {
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

// asking says what the API server would not do. A Node that is not there is said as such.
func asking(err error, doing, node string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && node != "":
		return fmt.Errorf("there is no node %q in this cluster", node)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot patch resource"):
		return fmt.Errorf("%s was refused: %w; the ClusterRole drydock-operator of Drydock's chart has that right", doing, err)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("%s was refused: %w", doing, err)
	}
	return fmt.Errorf("%s failed: %w", doing, err)
}

// plain makes a text fit for one line of a terminal: what others wrote on a Node must not be obeyed by it.
func plain(s string) string { return text.Line(s, maxCell) }

// maxCell bounds a text of a table; what Drydock writes is shorter.
const maxCell = 8 << 10
