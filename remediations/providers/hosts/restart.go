package hosts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// How often a unit's state is read after its restart: soon at first, since most restarts take a
// moment.
const (
	lookFirst = 200 * time.Millisecond
	lookMost  = 2 * time.Second
)

// Restart has systemd on the host restart the unit, and waits until the unit has a new invocation.
// It calls mayStill right before it sends the command, which it sends once.
//
// CallAccepted: this attempt started the unit again. CallRefused: certainly nothing happened; if
// the reason is that the unit is being restarted already, the error is ErrBusy. CallUnknown: the
// command was sent, and its effect is unknown. The error says why the restart is not accepted.
// Restart takes three Timeouts at most: to look, to send, and to see the effect.
func (c *Client) Restart(ctx context.Context, h Host, unit, attempt string, mayStill func() error) (remediations.CallOutcome, error) {
	t := task{"restarting", h.Name, unit}
	cmd, err := c.restart(unit, attempt)
	if err != nil {
		return remediations.CallRefused, t.fail(err)
	}
	before, err := c.Status(ctx, h, unit)
	switch {
	case err != nil:
		return remediations.CallRefused, err
	case before.Restarting == attempt:
		return remediations.CallUnknown, t.fail(errors.New("this very attempt was sent before, and is not sent again"))
	case before.Restarting != "":
		return remediations.CallRefused, t.fail(&busyError{Attempt: before.Restarting, text: fmt.Sprintf("attempt %s restarts it already, or did within the last %s, and there is one at a time", before.Restarting, text.Duration(c.o.Hold))})
	}
	sending, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	a, err := c.run(sending, h, cmd, mayStill)
	if err == nil {
		err = a.failure()
	}
	if err == nil || (a.sent && !a.certain(err)) {
		return c.settle(ctx, h, t, before, attempt, err)
	}
	var busy *busyError
	if errors.As(err, &busy) {
		if now, err := c.Status(ctx, h, unit); err == nil {
			busy.Attempt = now.Restarting
		}
	}
	return remediations.CallRefused, t.fail(fmt.Errorf("nothing was done: %w", err))
}

// certain reports whether a command that ended certainly did nothing: the refusing program is
// known, and either had not called systemd yet, or was systemd.
func (a *answer) certain(err error) bool {
	if !a.ended {
		return false
	}
	if a.code == notExecutable || a.code == notFound || errors.Is(err, ErrBusy) || errors.Is(err, errDenied) || errors.Is(err, ErrBooted) || errors.Is(err, errInhibited) {
		return true
	}
	for _, said := range []string{"Failed to connect to bus", "Failed to parse", "Unknown assignment", "unrecognized option"} {
		if strings.Contains(a.stderr.String(), said) {
			return true
		}
	}
	return false
}

// The exit codes of a shell that could not begin a command.
const notExecutable, notFound = 126, 127

// settle waits for the effect of a restart that was sent, until the unit has a new invocation or
// the time has ended. If it is unknown whether systemd accepted the restart, only the transient
// unit with the attempt's name proves it: a kubelet that dies by itself has a new invocation as
// well.
func (c *Client) settle(ctx context.Context, h Host, t task, before Status, attempt string, doubt error) (remediations.CallOutcome, error) {
	limit, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	taken, last := doubt == nil, doubt
	for wait := lookFirst; limit.Err() == nil; wait = min(2*wait, lookMost) {
		s, err := c.Status(limit, h, t.unit)
		switch {
		case err != nil && limit.Err() == nil:
			last = err
		case err == nil:
			taken = taken || s.Restarting == attempt
			if taken && s.InvocationID != "" && s.InvocationID != before.InvocationID {
				return remediations.CallAccepted, nil
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-limit.Done():
		}
		timer.Stop()
	}
	sent := "the command was sent, and nothing shows whether systemd took it"
	if taken {
		sent = fmt.Sprintf("systemd took it, and the unit was not restarted within %s", text.Duration(c.o.Timeout))
	}
	return remediations.CallUnknown, t.fail(kinded(errUnsettled, last, "it may have been done: %s; take it as done and look at the unit", sent))
}

// errUnsettled is the error of a command that was sent and whose effect is unknown.
var errUnsettled = errors.New("it is not known what came of it")
