// Package cli is what the commands of Drydock's programs share: exit codes, printing of errors,
// signals, and flags that environment variables set.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/text"
)

// These are the exit codes for success, for a failure of the command's work, and for a wrong
// command line.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// Program is one of Drydock's programs.
type Program struct {
	// Name is what people type to call the program.
	Name string
	// Lines returns one line for each fault. If it is nil, the line is the program's name, a colon and
	// the error.
	Lines func(error) []string
}

// Main runs a program and exits with its code. SIGINT and SIGTERM end the program's context.
func Main(execute func(ctx context.Context, args []string) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// Execute runs the command in args and returns the exit code.
func (p Program) Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	markRunErrors(root)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return p.report(root.ExecuteContext(ctx), stderr)
}

// ErrReported is returned by a command that has already printed why it failed.
var ErrReported = errors.New("failed")

// Exit is an exit code that is a command's answer. A command that succeeded returns it as its
// error.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usage marks an error in how the command was called.
func Usage(err error) error { return usageError{err} }

// Usagef formats an error like fmt.Errorf, and marks it as an error in how the command was called.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// workError is for a command that was called correctly, but failed or was refused.
type workError struct{ error }

func (e workError) Unwrap() error { return e.error }

// markRunErrors makes errors of RunE workErrors unless they are marked as usage. All other errors
// come from cobra and are about usage, for example unknown flags.
func markRunErrors(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			var usage usageError
			if err == nil || errors.As(err, &usage) {
				return err
			}
			return workError{err}
		}
	}
	for _, child := range cmd.Commands() {
		markRunErrors(child)
	}
}

func (p Program) report(err error, stderr io.Writer) int {
	var work workError
	var exit Exit
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &work):
		if !errors.Is(err, ErrReported) {
			p.print(work.error, stderr)
		}
		return ExitFailed
	default:
		p.print(err, stderr)
		_, _ = fmt.Fprintf(stderr, "Run '%[1]s --help' or '%[1]s COMMAND --help' for its usage.\n", p.Name)
		return ExitUsage
	}
}

func (p Program) print(err error, stderr io.Writer) {
	lines := []string{fmt.Sprintf("%s: %v", p.Name, err)}
	if p.Lines != nil {
		lines = p.Lines(err)
	}
	for _, line := range lines {
		_, _ = fmt.Fprintln(stderr, text.Visible(line)) // errors may quote text of other users
	}
}
