package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/config"
)

// The exit codes that scripts may rely on.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is an error about how the command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// failedError is an error of a command's own work. Its cause is nil where all has been said already.
type failedError struct{ cause error }

func (e failedError) Error() string {
	if e.cause == nil {
		return "failed"
	}
	return e.cause.Error()
}

func (e failedError) Unwrap() error { return e.cause }

// markRunErrors makes every error of a command's own work a failedError, unless it says that it is about usage. What
// comes out of cobra without being one is then about usage too: unknown commands and flags, wrong arguments.
func markRunErrors(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			var usage usageError
			var failed failedError
			if err == nil || errors.As(err, &usage) || errors.As(err, &failed) {
				return err
			}
			return failedError{err}
		}
	}
	for _, child := range cmd.Commands() {
		markRunErrors(child)
	}
}

// report says what went wrong and returns the exit code.
func report(err error, stderr io.Writer) int {
	var failed failedError
	var faults config.Faults
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &faults):
		// Each line of them names its file, as those of check do.
		_, _ = fmt.Fprintln(stderr, faults)
		return exitFailed
	case errors.As(err, &failed):
		if failed.cause != nil {
			_, _ = fmt.Fprintf(stderr, "drydock: %v\n", err)
		}
		return exitFailed
	default:
		_, _ = fmt.Fprintf(stderr, "drydock: %v\nRun 'drydock --help' or 'drydock COMMAND --help' for how to call it.\n", err)
		return exitUsage
	}
}
