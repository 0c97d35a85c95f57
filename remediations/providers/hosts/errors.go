package hosts

import (
	"errors"
	"fmt"

	"drydock.dev/drydock/remediations/rescue"
)

// The errors that callers distinguish by errors.Is. Any other error concerns the host or its
// answer.
var (
	// ErrUnreachable means that there was no connection, that the connection was cut, or that no
	// answer came in time.
	ErrUnreachable = errors.New("the host cannot be reached over SSH")
	// ErrHostKey means that the host did not prove its identity, and that nothing was sent to it.
	ErrHostKey = errors.New("the host's key is not known")
	// errDenied means that the host rejects Drydock's key, or that sudo or drydock-host refuses the
	// command.
	errDenied = errors.New("the host refuses")
	// ErrNoUnit means that the host has no unit of that name, or that the unit is masked.
	ErrNoUnit = errors.New("the host has no such unit")
	// ErrBooted means that the host has booted since Drydock decided to reboot it. Nothing was
	// done.
	ErrBooted    = errors.New("the host has booted since the decision")
	errInhibited = errors.New("a shutdown of the host is blocked")
	// ErrBusy means that the unit is being restarted on the host, or was restarted within
	// Options.Hold.
	ErrBusy = rescue.ErrBusy
	// SSH to every host fails until a person corrects Drydock's own key or known_hosts file.
	errSetup = errors.New("SSH cannot be used")
)

type busyError struct {
	Attempt string
	text    string
}

func (e *busyError) Error() string { return e.text }

// Is reports whether target is ErrBusy.
func (e *busyError) Is(target error) bool { return target == ErrBusy }

// text is one sentence for people.
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

// The cause may contain text of another program, so clip makes it safe.
func kinded(kind, cause error, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if cause != nil {
		text += " (" + clip(cause.Error()) + ")"
	}
	return &kindError{kind: kind, cause: cause, text: text}
}

type task struct{ verb, host, unit string }

func (t task) fail(err error) error {
	return fmt.Errorf("%s %s on host %q: %w", t.verb, clip(t.unit), clip(t.host), err)
}
