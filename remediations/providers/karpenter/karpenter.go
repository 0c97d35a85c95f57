// Package karpenter replaces the machines behind Nodes through Karpenter, which runs in this
// cluster.
//
// Drydock deletes the Node's NodeClaim, once, by its UID. Karpenter then drains the Node, ends the
// instance, and deletes the Node and the NodeClaim. It makes a new one if pods need it.
//
// A NodeClaim is the Node's only if the Node's ownerReference names it with its UID, both have the
// same provider ID, and the NodeClaim's status.nodeName names the Node. If a second NodeClaim or
// Node claims the same, Drydock refuses.
//
// A manual deletion bypasses what Karpenter itself respects, so Drydock respects it:
// do-not-disrupt, a disruption under way, and a budget that allows no disruption.
package karpenter

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Options configure a Client.
type Options struct {
	// API is how the API server is reached.
	API *rest.Config
	// Timeout bounds one request. Zero: 5 s.
	Timeout time.Duration
	// Now is the clock for the schedules of budgets.
	Now func() time.Time
	// Registry has the remediations that a record on the Node may name, besides the shipped ones.
	Registry remediations.Registry
}

// Client deletes NodeClaims. It is safe for concurrent use.
type Client struct {
	*kubeapi.Client
	core, policy *kubeapi.Client
	now          func() time.Time
	registry     remediations.Registry
}

// New checks the options. It makes no request.
func New(o Options) (*Client, error) {
	api, err := kubeapi.New(kubeapi.Options{
		REST: o.API, APIVersion: apiVersion, Timeout: o.Timeout,
		Needs: "Karpenter 1.0 or later must be installed in this cluster", Docs: "docs/providers/karpenter.md",
	})
	if err != nil {
		return nil, fmt.Errorf("configuring Karpenter: %w", err)
	}
	return &Client{Client: api, core: api.Of("v1"), policy: api.Of("policy/v1"), now: o.Now, registry: o.Registry}, nil
}
