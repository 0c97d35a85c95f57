package hosts

import (
	"context"
	"fmt"
	"strings"

	"drydock.dev/drydock/remediations"
)

// How is the way of a reboot.
type How string

const (
	// Clean is systemctl reboot: units are stopped, disks unmounted.
	Clean How = "reboot"
	// Sysrq has the kernel reboot at once, without any of that: for a host whose processes no
	// longer end.
	Sysrq How = "sysrq"
)

// Boot is one boot of a host.
type Boot struct {
	// ID is different after each boot.
	ID string
	// Sysrq: the host allows that way, too. If it allows none, the error is errDenied.
	Sysrq bool
}

// Boot reads the host's boot ID, and how it may be rebooted.
func (c *Client) Boot(ctx context.Context, h Host) (Boot, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	a, err := c.run(ctx, h, c.boot(), nil)
	if err == nil {
		err = a.failure()
	}
	if err != nil {
		return Boot{}, fmt.Errorf("asking host %q for its boot ID: %w", clip(h.Name), err)
	}
	id, allows, _ := strings.Cut(strings.TrimSpace(a.stdout.String()), " ")
	if !bootName.MatchString(id) || (allows != "yes" && allows != "sysrq") {
		return Boot{}, fmt.Errorf("asking host %q for its boot ID: it answered %q; check that drydock-host there is of this version", clip(h.Name), clip(a.stdout.String()))
	}
	return Boot{ID: id, Sysrq: allows == "sysrq"}, nil
}

// Reboot reboots the host, if its boot ID is still bootID: the command that reboots compares the ID
// on the host. Reboot calls mayStill right before it sends that command, which it sends once.
//
// CallAccepted: the host confirmed that it reboots. CallRefused: certainly nothing happened.
// CallUnknown: the command was sent, and its effect is unknown. Reboot takes two Timeouts at most.
func (c *Client) Reboot(ctx context.Context, h Host, how How, bootID, attempt string, mayStill func() error) (remediations.CallOutcome, error) {
	refused := func(err error) (remediations.CallOutcome, error) {
		return remediations.CallRefused, fmt.Errorf("rebooting host %q: nothing was done: %w", clip(h.Name), err)
	}
	cmd, err := c.reboot(how, bootID, attempt)
	if err != nil {
		return refused(err)
	}
	is, err := c.Boot(ctx, h)
	if err == nil {
		err = is.against(how, bootID)
	}
	if err != nil {
		return refused(err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	a, err := c.run(ctx, h, cmd, mayStill)
	if err == nil {
		if err = a.failure(); err == nil && strings.TrimSpace(a.stdout.String()) != "rebooting "+bootID {
			err = fmt.Errorf("it answered %q", clip(a.stdout.String()))
		}
	}
	switch {
	case err == nil:
		return remediations.CallAccepted, nil
	case !a.sent || a.certain(err):
		return refused(err)
	}
	return remediations.CallUnknown, kinded(errUnsettled, err, "rebooting host %q: it may have been done; take it as done and look whether the host boots", clip(h.Name))
}

// against returns why the host is not rebooted in that way.
func (b Boot) against(how How, bootID string) error {
	switch {
	case b.ID != bootID:
		return kinded(ErrBooted, nil, "its boot ID is %s, and %s when the repair was decided on", b.ID, bootID)
	case how == Sysrq && !b.Sysrq:
		return kinded(errDenied, nil, "drydock-host there has reboot=yes; write reboot=sysrq, or take the step sysrq out of the plan")
	}
	return nil
}
