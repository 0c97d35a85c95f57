package sidecar

import (
	"context"
	"errors"
	"fmt"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	kind "drydock.dev/drydock/remediations/targets/sidecar"
)

// Clients has one Client for each item of the section providers.sidecars, by the item's name.
type Clients map[string]*Client

// Look implements engine.Sidecars.
func (c Clients) Look(ctx context.Context, provider string, p remediations.Pod) kind.Observation {
	client := c[provider]
	if client == nil {
		return kind.Observation{Pod: p, Unknown: unnamed(provider).Error()}
	}
	return client.Look(ctx, p)
}

// Approve implements engine.Sidecars. The outcome is CallRefused only if certainly nothing was
// approved, and otherwise CallUnknown after an error.
func (c Clients) Approve(ctx context.Context, a engine.Approval, mayStill func() error) (remediations.CallOutcome, error) {
	client := c[a.Provider]
	if client == nil {
		return remediations.CallRefused, unnamed(a.Provider)
	}
	err := client.Approve(ctx, a, mayStill)
	var refused *refusedError
	switch {
	case err == nil:
		return remediations.CallAccepted, nil
	case errors.As(err, &refused):
		return remediations.CallRefused, err
	}
	return remediations.CallUnknown, err
}

func unnamed(provider string) error {
	return fmt.Errorf("providers.sidecars has no item with the name %q", provider)
}
