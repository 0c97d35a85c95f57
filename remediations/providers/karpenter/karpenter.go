// Package karpenter replaces the machines behind Nodes through Karpenter, which runs in this
// cluster.
//
// Drydock deletes the Node's NodeClaim once, by its UID. Karpenter then drains the Node, terminates
// the instance, and deletes the Node and the NodeClaim. It makes a new NodeClaim if pods need one.
//
// A NodeClaim is the Node's only under three conditions:
//   - The Node's ownerReference has the NodeClaim's name and UID.
//   - Both have the same provider ID.
//   - The NodeClaim's status.nodeName is the Node.
//
// Drydock refuses if another NodeClaim has the same provider ID or status.nodeName. It also refuses
// if another Node of the NodePool has the same NodeClaim or provider ID.
//
// If a client deletes a NodeClaim, Karpenter does not check its own rules. So Drydock checks them:
// the annotation do-not-disrupt, a disruption in progress, and budgets that allow no disruption.
package karpenter

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/karpenter/settings"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Options configure a Client: the section providers.karpenter, and values that are not in the
// configuration.
type Options struct {
	settings.Karpenter
	// API is the connection to the API server.
	API *rest.Config
	// Now is for the schedules of budgets.
	Now func() time.Time
	// Registry has the repair steps of other programs. Records on Nodes may name them.
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
