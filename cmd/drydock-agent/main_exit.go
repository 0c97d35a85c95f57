package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// The exit codes are those of drydock.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is an error about how the command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// failedError is an error of a command's own work.
type failedError struct{ error }

func (e failedError) Unwrap() error { return e.error }

// markRunErrors makes every error of a command's own work a failedError, unless it says that it is about usage. What
// comes out of cobra without being one is then about usage too: unknown commands and flags, wrong arguments.
func markRunErrors(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			var usage usageError
			if err == nil || errors.As(err, &usage) {
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
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &failed):
		_, _ = fmt.Fprintf(stderr, "drydock-agent: %v\n", err)
		return exitFailed
	default:
		_, _ = fmt.Fprintf(stderr, "drydock-agent: %v\nRun 'drydock-agent --help' or 'drydock-agent COMMAND --help' for how to call it.\n", err)
		return exitUsage
	}
}
