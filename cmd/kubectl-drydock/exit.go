package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drydock.dev/drydock/internal/text"
)

// The exit codes that scripts may rely on.
const (
	exitOK      = 0
	exitRefused = 1
	exitUsage   = 2
)

// usageError is an error about how the command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// refusal is an error of a command's own work: it was called well, and it cannot or must not be done.
type refusal struct{ error }

func (e refusal) Unwrap() error { return e.error }

// markRunErrors makes every error of a command's own work a refusal, unless it says that it is about usage. What comes
// out of cobra without being one is then about usage too: unknown commands and flags, wrong arguments.
func markRunErrors(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			var usage usageError
			if err == nil || errors.As(err, &usage) {
				return err
			}
			return refusal{err}
		}
	}
	for _, child := range cmd.Commands() {
		markRunErrors(child)
	}
}

// report says what went wrong, in a sentence for each thing that was refused, and returns the exit code.
func report(err error, stderr io.Writer) int {
	var refused refusal
	var several refusals
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &several):
		for _, e := range several {
			fmt.Fprintf(stderr, "error: %s\n", plain(sentence(e)))
		}
		return exitRefused
	case errors.As(err, &refused):
		fmt.Fprintf(stderr, "error: %s\n", plain(sentence(refused.error)))
		return exitRefused
	default:
		fmt.Fprintf(stderr, "error: %s\nRun 'kubectl drydock --help' or 'kubectl drydock COMMAND --help' for how to call it.\n", plain(err.Error()))
		return exitUsage
	}
}

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
