package civo

import (
	"context"

	"github.com/civo/civogo"

	"drydock.dev/drydock/remediations/engine"
)

// Reboot hard-reboots the machine, as if its power was cut. Nil means that Civo accepted the
// request; after an *unknownError, Civo may have rebooted the machine. mayStill is called when the
// connection is established, before the first byte of the request. If it returns an error, the
// request is not sent.
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

// once waits until no other call is in progress, looks up the machine, and sends one write, all
// within Options.IssueWithin.
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
