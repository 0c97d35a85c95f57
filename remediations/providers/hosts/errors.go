package hosts

import (
	"errors"
	"fmt"

	"drydock.dev/drydock/remediations/rescue"
)

// Errors that a caller distinguishes. All others concern the host or its answer.
var (
	// ErrUnreachable: no connection, or it was cut, or no answer came in time.
	ErrUnreachable = errors.New("the host cannot be reached over SSH")
	// ErrHostKey: the host did not prove its identity. Nothing was sent to it.
	ErrHostKey = errors.New("the host's key is not known")
	// errDenied: the host refuses the key, or sudo refuses the command.
	errDenied = errors.New("the host refuses")
	// ErrNoUnit: the host has no such unit.
	ErrNoUnit = errors.New("the host has no such unit")
	// ErrBooted: the host has been booted since, so it was not rebooted.
	ErrBooted = errors.New("the host has been booted since")
	// errInhibited: a systemd inhibitor blocks the shutdown of the host.
	errInhibited = errors.New("a shutdown of the host is blocked")
	// ErrBusy: that unit is being restarted on the host, or was within the hold. The error is a
	// *busyError; the value is the rescue's.
	ErrBusy = rescue.ErrBusy
	// errSetup: Drydock's own key or known_hosts cannot be used, so every host fails until a person
	// corrects it.
	errSetup = errors.New("SSH cannot be used")
)

// busyError is ErrBusy with the attempt that restarts the unit.
type busyError struct {
	Attempt string
	text    string
}

func (e *busyError) Error() string { return e.text }

// Is reports a match with ErrBusy.
func (e *busyError) Is(target error) bool { return target == ErrBusy }

// kindError is a sentence of one of the kinds above.
type kindError struct {
	kind, cause error
	text        string
}

func (e *kindError) Error() string { return e.text }

func (e *kindError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

// kinded makes a kindError. The cause's text is foreign, so it is clipped.
func kinded(kind, cause error, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if cause != nil {
		text += " (" + clip(cause.Error()) + ")"
	}
	return &kindError{kind: kind, cause: cause, text: text}
}

// task is what an error is about.
type task struct{ verb, host, unit string }

func (t task) fail(err error) error {
	return fmt.Errorf("%s %s on host %q: %w", t.verb, clip(t.unit), clip(t.host), err)
}
