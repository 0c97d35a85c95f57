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

// How often a unit is looked at after its restart: soon at first, since most take a moment.
const (
	lookFirst = 200 * time.Millisecond
	lookMost  = 2 * time.Second
)

// Restart has systemd on the host restart the unit, and waits until it is another invocation. It asks mayStill at the very
// last moment before the command leaves, which is sent once.
//
// CallAccepted: the unit was started anew by this attempt. CallRefused: certainly nothing happened; where that is because it
// is being restarted already, the error is ErrBusy. CallUnknown: the command was sent, and what came of it is not known. The
// error says why it is not accepted. It takes three Timeouts at most: to look, to send, and to see what came of it.
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

// certain reports whether a command that ended certainly did nothing: who said no is known, and had not asked systemd yet, or
// was systemd.
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

// What a shell ends with that could not begin a command.
const notExecutable, notFound = 126, 127

// settle looks what came of a restart that was sent, until the unit is another invocation or the time is over. Of one of which
// it is not known whether systemd took it, only the transient unit with the attempt's name shows that it did: a kubelet that
// dies by itself is another invocation as well.
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

// errUnsettled is of a command that was sent.
var errUnsettled = errors.New("it is not known what came of it")
