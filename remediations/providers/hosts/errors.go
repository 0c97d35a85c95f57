package hosts

import (
	"errors"
	"fmt"

	"drydock.dev/drydock/remediations/rescue"
)

// What a caller tells apart. All others concern the host or its answer.
var (
	// ErrUnreachable: no connection, or it was cut, or no answer came in time.
	ErrUnreachable = errors.New("the host cannot be reached over SSH")
	// ErrHostKey: the host did not prove that it is the host. Nothing was said to it.
	ErrHostKey = errors.New("the host's key is not known")
	// errDenied: the host refuses the key, or sudo the command.
	errDenied = errors.New("the host refuses")
	// ErrNoUnit: the host has no such unit.
	ErrNoUnit = errors.New("the host has no such unit")
	// ErrBooted: the host has been booted since, so it was not rebooted.
	ErrBooted = errors.New("the host has been booted since")
	// errInhibited: somebody blocks the shutdown of the host, with a systemd inhibitor.
	errInhibited = errors.New("a shutdown of the host is blocked")
	// ErrBusy: that unit is being restarted on the host, or was within the hold. It is a *busyError, and the rescue's.
	ErrBusy = rescue.ErrBusy
	// errSetup: our own key or known_hosts cannot be used, so it is the same for every host until a person mends it.
	errSetup = errors.New("SSH cannot be used")
)

// busyError is ErrBusy, and says by which attempt.
type busyError struct {
	Attempt string
	text    string
}

func (e *busyError) Error() string { return e.text }

// Is makes it ErrBusy.
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

// kinded makes one. The cause's text is foreign, so it is clipped.
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
