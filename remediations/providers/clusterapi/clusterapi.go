// Package clusterapi replaces the machines behind Nodes through Cluster API. The management
// cluster, which has Cluster API's objects, may be this cluster or another one.
//
// Drydock requests the replacement of a Machine, and the Machine's MachineSet carries it out.
// Cluster API drains the Node, deletes the machine and makes a new one. The request has one of
// three forms:
//
//   - If a MachineHealthCheck selects the Machine, Drydock sets the annotation
//     cluster.x-k8s.io/remediate-machine to the attempt's ID.
//   - If no MachineHealthCheck selects the Machine, Drydock sets two conditions in the Machine's
//     status: HealthCheckSucceeded=False and OwnerRemediated=False. Drydock uses the form of
//     v1beta2, because conditions of the same names below status.deprecated have no effect.
//   - If withoutHealthCheck is delete in the configuration, Drydock deletes the Machine instead of
//     setting conditions.
//
// A Machine is the Node's only if both have the same spec.providerID, and the Machine's
// status.nodeRef names the Node. No other Machine of the cluster may have this provider ID or name
// this Node. Drydock records the Machine's UID on the Node before the request, and sends the UID
// with each write. So the API server refuses a write to another Machine of the same name.
package clusterapi

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"drydock.dev/drydock/remediations/providers/clusterapi/settings"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Options configure a Client: the section providers.clusterAPI, and the connection to this cluster.
type Options struct {
	settings.ClusterAPI
	// API is this cluster's API server, which has the Nodes.
	API *rest.Config
}

// Client requests replacements from Cluster API. It is safe for concurrent use.
type Client struct {
	*kubeapi.Client
	nodes *kubeapi.Client // for this cluster's API server
	o     Options
}

// New checks the options. It sends no request.
func New(o Options) (*Client, error) {
	if o.Cluster.Namespace == "" || o.Cluster.Name == "" {
		return nil, errors.New("configuring Cluster API: the cluster must have the form namespace/name")
	}
	of := kubeapi.Options{
		REST: o.API, APIVersion: apiVersion, Namespace: o.Cluster.Namespace, Timeout: o.Timeout,
		Needs: "Cluster API 1.11 or later must be installed in this cluster", Docs: "docs/providers/cluster-api.md",
	}
	here, err := kubeapi.New(of)
	if err != nil {
		return nil, fmt.Errorf("configuring Cluster API: %w", err)
	}
	c := &Client{Client: here, nodes: here.Of("v1"), o: o}
	if o.Kubeconfig == "" {
		return c, nil
	}
	of.REST, of.Kubeconfig, of.Server = nil, o.Kubeconfig, "the API server of the management cluster"
	of.Needs, of.Docs = "Cluster API 1.11 or later must be installed in the management cluster", "docs/providers/cluster-api.md#another-management-cluster"
	if c.Client, err = kubeapi.New(of); err != nil {
		return nil, fmt.Errorf("configuring Cluster API: %w", err)
	}
	return c, nil
}
