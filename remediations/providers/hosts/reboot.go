package hosts

import (
	"context"
	"fmt"
	"strings"

	"drydock.dev/drydock/remediations"
)

// How is the kind of a reboot: Clean or Sysrq.
type How string

const (
	// Clean is systemctl reboot: systemd stops units and unmounts disks.
	Clean How = "reboot"
	// Sysrq makes the kernel reboot immediately: no unit is stopped, no disk is unmounted. It is
	// for a host whose processes can no longer be stopped.
	Sysrq How = "sysrq"
)

// Boot is the present boot of a host.
type Boot struct {
	// ID is the kernel's boot ID, which changes with each boot.
	ID string
	// Sysrq is true if the host allows both Sysrq and Clean, and not only Clean.
	Sysrq bool
}

// Boot reads the host's boot ID, and which kinds of reboot the host allows. If it allows none, the
// error is errDenied.
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
		return Boot{}, fmt.Errorf("asking host %q for its boot ID: drydock-host answered %q; install the drydock-host of this Drydock version on the host", clip(h.Name), clip(a.stdout.String()))
	}
	return Boot{ID: id, Sysrq: allows == "sysrq"}, nil
}

// Reboot reboots the host if its boot ID is still bootID. The script on the host compares the IDs
// right before the reboot. Reboot calls mayStill right before it sends the command, and sends the
// command once.
//
// CallAccepted means that the host confirmed that it reboots. CallRefused means that certainly
// nothing happened. CallUnknown means that the command was sent, and its effect is unknown. Reboot
// takes at most twice Options.Timeout.
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
			err = fmt.Errorf("drydock-host answered %q", clip(a.stdout.String()))
		}
	}
	switch {
	case err == nil:
		return remediations.CallAccepted, nil
	case !a.sent || a.certain(err):
		return refused(err)
	}
	return remediations.CallUnknown, kinded(errUnsettled, err, "rebooting host %q: the reboot may have been done; treat it as done, and check whether the host boots", clip(h.Name))
}

func (b Boot) against(how How, bootID string) error {
	switch {
	case b.ID != bootID:
		return kinded(ErrBooted, nil, "the host's boot ID is %s; at the decision it was %s", b.ID, bootID)
	case how == Sysrq && !b.Sysrq:
		return kinded(errDenied, nil, "drydock-host on the host has reboot=yes; write reboot=sysrq there, or remove the step sysrq from the plan")
	}
	return nil
}
