// Package clusterapi replaces the machines behind Nodes through Cluster API, whose management
// cluster is this one or another.
//
// Drydock requests the replacement, and the Machine's MachineSet replaces: it drains the Node,
// deletes the machine and makes another one. The form of the request:
//
//   - A MachineHealthCheck selects the Machine: the annotation cluster.x-k8s.io/remediate-machine,
//     with the attempt's ID.
//   - No MachineHealthCheck selects it: the conditions HealthCheckSucceeded=False and
//     OwnerRemediated=False in the Machine's status, in the form of v1beta2. Conditions of the same
//     names below status.deprecated do nothing.
//   - No MachineHealthCheck selects it, and the configuration says delete: the Machine is deleted.
//
// A Machine is the Node's only if spec.providerID of both is the same, the Machine's status.nodeRef
// names the Node, and no other Machine of the cluster has either. Its UID is recorded with the
// intent and sent with each write, so that the API server refuses a write that would reach another
// Machine of that name.
package clusterapi

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Options configure a Client.
type Options struct {
	// API is the connection to this cluster's API server, which has the Nodes.
	API *rest.Config
	// Kubeconfig is a file for the connection to the API server of the management cluster; empty:
	// this cluster manages itself.
	Kubeconfig string
	// Cluster is the Cluster object of this cluster, in the management cluster. Its Machines are in
	// the same namespace.
	Cluster types.NamespacedName
	// Delete: a Machine that no MachineHealthCheck selects is deleted, instead of being marked as
	// unhealthy.
	Delete bool
	// Timeout bounds one request. Zero: 5 s.
	Timeout time.Duration
}

// Client requests replacements from Cluster API. It is safe for concurrent use.
type Client struct {
	*kubeapi.Client
	nodes *kubeapi.Client // of this cluster
	o     Options
}

// New checks the options. It makes no request.
func New(o Options) (*Client, error) {
	if o.Cluster.Namespace == "" || o.Cluster.Name == "" {
		return nil, errors.New("configuring Cluster API: the cluster is not of the form namespace/name")
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
