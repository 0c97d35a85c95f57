// Package karpenter replaces the machines behind Nodes through Karpenter, which runs in this
// cluster.
//
// Drydock deletes the Node's NodeClaim once, by its UID. Karpenter then drains the Node, terminates
// the instance, and deletes the Node and the NodeClaim. It makes a new NodeClaim if pods need one.
//
// A NodeClaim is the Node's only if the Node's ownerReference has the NodeClaim's name and UID,
// both have the same provider ID, and the NodeClaim's status.nodeName is the Node. If another
// NodeClaim or Node has the same values, Drydock refuses.
//
// Karpenter does not check a manual deletion against its own rules, so Drydock checks them: the
// annotation do-not-disrupt, a disruption in progress, and budgets that allow no disruption.
package karpenter

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/karpenter/settings"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Options configure a Client: the section of the configuration, and what it needs beside that.
type Options struct {
	settings.Karpenter
	// API is the connection to the API server.
	API *rest.Config
	// Now returns the current time, for the schedules of budgets.
	Now func() time.Time
	// Registry has the remediations, besides the shipped ones, that a record on the Node may name.
	Registry remediations.Registry
}

// Client deletes NodeClaims. It is safe for concurrent use.
type Client struct {
	*kubeapi.Client
	core, policy *kubeapi.Client
	now          func() time.Time
	registry     remediations.Registry
}

// New checks the options. It sends no request.
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
