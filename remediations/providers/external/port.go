package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Remediator makes a remediation object, and a remediator reboots the machine.
type Remediator struct{ *Client }

// Survey returns every reason against a remediation object, and changes nothing.
func (c Remediator) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	if _, _, err := c.look(ctx, m); err != nil {
		return c.core.Sentence(err, "the remediation of node %q", m.Node).Survey()
	}
	return remediations.Survey{}
}

// Act implements engine.Actuator.
func (c Remediator) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	outcome, err := c.act(ctx, m, mayStill)
	return c.core.Ended(outcome, err, fmt.Sprintf("requesting the remediation of node %q by %s", m.Node, m.Template), "the object may have been made")
}

func (c Remediator) act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	made, _, err := c.look(ctx, m)
	if err != nil {
		return remediations.CallRefused, err
	}
	return c.make(ctx, m, made, mayStill)
}

// make sends the request once.
func (c *Client) make(ctx context.Context, m engine.Machine, made *object, mayStill func() error) (remediations.CallOutcome, error) {
	if m.Attempt == "" {
		return remediations.CallRefused, kit.Refuse(kit.Machine, "the attempt has no ID, which the object needs")
	}
	api := c.of(m.Template)
	r := kubeapi.Request{Method: http.MethodPost, Path: plural(made.Kind), ContentType: "application/json", Body: made}
	outcome, err := api.Change(ctx, r, mayStill, func(body []byte) bool {
		var shown object
		return json.Unmarshal(body, &shown) == nil && mine(&shown, made)
	})
	if outcome != remediations.CallRefused || ctx.Err() != nil || errors.Is(err, engine.ErrAccount) {
		return outcome, err
	}
	// The request may have failed because an object of that name exists. If the object has this
	// attempt's ID, this attempt made it, and the answer was lost.
	var there object
	if api.Get(ctx, r.Path+"/"+made.Name, made.Kind, &there) == nil && mine(&there, made) {
		return remediations.CallAccepted, nil
	}
	return outcome, err
}

func mine(shown, made *object) bool {
	return shown.Kind == made.Kind && shown.Name == made.Name && shown.UID != "" && shown.Annotations[attemptKey] == made.Annotations[attemptKey]
}
