package civo

import (
	"context"

	"github.com/civo/civogo"

	"drydock.dev/drydock/remediations/engine"
)

// Reboot hard-reboots the machine, as if its power were cut. Nil means that Civo accepted the
// reboot, not that the machine is back. A *refusedError means that Civo certainly did nothing, an
// *unknownError that it may have: the reboot must then count as issued.
//
// mayStill is called at the last moment, after the connection is made and before the first byte of
// the request leaves; if it returns an error, the request is not sent. Nil: no check.
func (c *Client) Reboot(ctx context.Context, m engine.Machine, mayStill func() error) error {
	return c.reboot(ctx, task{verb: "rebooting", machine: m}, mayStill, (*civogo.Client).HardRebootInstance)
}

// SoftReboot makes the machine's operating system restart, which does not work if the system hangs.
// Otherwise it is like Reboot.
func (c *Client) SoftReboot(ctx context.Context, m engine.Machine, mayStill func() error) error {
	return c.reboot(ctx, task{verb: "soft-rebooting", machine: m}, mayStill, (*civogo.Client).SoftRebootInstance)
}

func (c *Client) reboot(ctx context.Context, t task, mayStill func() error, call func(*civogo.Client, string) (*civogo.SimpleResponse, error)) error {
	return c.once(ctx, t, mayStill, c.findForReboot, func(api *civogo.Client, in Instance) (*civogo.SimpleResponse, error) {
		return call(api, in.ID)
	})
}

// once makes one write: it waits for its turn, looks the machine up, and sends
// the request, all while it may still be issued.
func (c *Client) once(ctx context.Context, t task, mayStill func() error,
	lookUp func(context.Context, task) (Instance, error),
	use func(*civogo.Client, Instance) (*civogo.SimpleResponse, error),
) error {
	issue, cancel := context.WithTimeout(ctx, c.o.IssueWithin)
	defer cancel()
	if err := c.takeTurn(issue, t); err != nil {
		return err
	}
	in, err := lookUp(issue, t)
	if err != nil {
		c.giveTurn()
		return err
	}
	t.instance = in.ID
	return c.write(ctx, issue, t, mayStill, func(api *civogo.Client) (*civogo.SimpleResponse, error) { return use(api, in) })
}
