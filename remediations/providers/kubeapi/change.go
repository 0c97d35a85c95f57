package kubeapi

import (
	"context"
	"errors"
	"net/http"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kit"
)

// Change sends a request that changes something, once. It calls mayStill when the connection is
// established, right before it sends the request. done reports whether the body of a successful
// answer shows the requested state; if not, the outcome is unknown.
func (c *Client) Change(ctx context.Context, r Request, mayStill func() error, done func(body []byte) bool) (remediations.CallOutcome, error) {
	r.Gate = kit.NewGate(ctx, mayStill)
	a := c.Send(ctx, r)
	var ours *kit.Refusal
	switch {
	case !a.Left && errors.As(a.Err, &ours):
		return remediations.CallRefused, ours
	case !a.Left:
		return remediations.CallRefused, &kit.Refusal{Why: kit.Passing, Text: "the request did not reach " + c.o.Server, Cause: c.Secrets.Error(a.Err)}
	case a.Err != nil:
		return remediations.CallUnknown, &kit.Refusal{Why: kit.Passing, Text: "the request was sent, but no complete answer came", Cause: c.Secrets.Error(a.Err)}
	case a.Status/100 == 2 && done(a.Body):
		return remediations.CallAccepted, nil
	case a.Own != nil && a.Status/100 == 4 && a.Status != http.StatusRequestTimeout:
		return remediations.CallRefused, c.Explain(r, a)
	}
	return remediations.CallUnknown, kit.Refuse(kit.Passing, "%s was answered with HTTP %d", r, a.Status)
}

// TakeBack sends a request that undoes what an ended attempt has changed. It returns nil if the
// object is gone, or if another client has changed the object meanwhile: then the next pass of the
// engine tries again.
func (c *Client) TakeBack(ctx context.Context, r Request) error {
	a := c.Send(ctx, r)
	if a.Err == nil && (a.Status/100 == 2 || a.Own != nil && (a.Status == http.StatusNotFound || a.Status == http.StatusConflict)) {
		return nil
	}
	return c.Explain(r, a)
}
