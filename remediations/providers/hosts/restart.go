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

// Most restarts take a moment, so the first wait is short. Each further wait is twice as long, up
// to lookMost.
const (
	lookFirst = 200 * time.Millisecond
	lookMost  = 2 * time.Second
)

// Restart requests that systemd on the host restarts the unit. It waits until the unit has a new
// invocation ID. It calls mayStill right before it sends the command, and sends the command once.
//
// CallAccepted means that this attempt started the unit again. CallRefused means that certainly
// nothing happened; the error is ErrBusy if the unit is already being restarted. CallUnknown means
// that the command was sent, and its effect is unknown. If the outcome is not CallAccepted, the
// error says why.
//
// Restart takes at most three times Options.Timeout: to read the state, to send the command, and to
// see the effect.
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
		return remediations.CallUnknown, t.fail(errors.New("this attempt was already sent, and is not sent again"))
	case before.Restarting != "":
		return remediations.CallRefused, t.fail(&busyError{Attempt: before.Restarting, text: fmt.Sprintf("attempt %s is restarting the unit, or restarted it within the last %s; a unit has one restart at a time", before.Restarting, text.Duration(c.o.Hold))})
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

// A failed command certainly did nothing only if systemd, or a program that runs before it, refused
// the command.
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

// Exit codes of a shell that could not start the command.
const notExecutable, notFound = 126, 127

// settle waits for the effect of a restart that was sent. It ends when the unit has a new
// invocation ID, or after Options.Timeout. The parameter doubt is the error of the command, or nil
// if systemd accepted the command.
//
// If doubt is not nil, settle requires a second proof: a transient unit with the attempt's name,
// which shows that systemd accepted the restart. A new invocation ID alone is not enough, because a
// kubelet that crashes and starts again also has one.
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
	sent := "the command was sent, and it is unknown whether systemd accepted it"
	if taken {
		sent = fmt.Sprintf("systemd accepted the command, but the unit did not restart within %s", text.Duration(c.o.Timeout))
	}
	return remediations.CallUnknown, t.fail(kinded(errUnsettled, last, "the restart may have been done: %s; treat it as done, and check the unit on the host", sent))
}

var errUnsettled = errors.New("the effect of the command is unknown")
