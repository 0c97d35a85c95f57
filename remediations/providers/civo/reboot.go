package civo

import (
	"context"

	"github.com/civo/civogo"

	"drydock.dev/drydock/remediations/engine"
)

// Reboot hard-reboots the machine, as if its power was cut. Nil means that Civo accepted the
// request; the machine has not booted yet. A *refusedError means that Civo certainly did nothing.
// After an *unknownError, Civo may have rebooted the machine, so the caller must treat the reboot
// as done.
//
// Reboot calls mayStill when the connection is established, before it sends the first byte of the
// request. If mayStill returns an error, Reboot does not send the request. A nil mayStill checks
// nothing.
func (c *Client) Reboot(ctx context.Context, m engine.Machine, mayStill func() error) error {
	return c.reboot(ctx, task{verb: "rebooting", machine: m}, mayStill, (*civogo.Client).HardRebootInstance)
}

// SoftReboot asks the machine's operating system to restart, which fails if the system hangs.
// Otherwise it is like Reboot.
func (c *Client) SoftReboot(ctx context.Context, m engine.Machine, mayStill func() error) error {
	return c.reboot(ctx, task{verb: "soft-rebooting", machine: m}, mayStill, (*civogo.Client).SoftRebootInstance)
}

func (c *Client) reboot(ctx context.Context, t task, mayStill func() error, call func(*civogo.Client, string) (*civogo.SimpleResponse, error)) error {
	return c.once(ctx, t, mayStill, c.findForReboot, func(api *civogo.Client, in Instance) (*civogo.SimpleResponse, error) {
		return call(api, in.ID)
	})
}

// once sends one write. It waits until no other call is in progress, looks up the machine, and
// sends the request. All this must be done within Options.IssueWithin.
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
