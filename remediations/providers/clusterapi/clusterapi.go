// Package clusterapi has the machines behind Nodes replaced by Cluster API, whose management cluster is this one or another.
//
// Drydock asks, and the Machine's MachineSet replaces: it drains the Node, deletes the machine and makes another one. How it is asked:
//
//   - A MachineHealthCheck selects the Machine: the annotation cluster.x-k8s.io/remediate-machine, with the attempt's ID.
//   - None does: the conditions HealthCheckSucceeded=False and OwnerRemediated=False in the Machine's status, as v1beta2 has them.
//     Those of the same names below status.deprecated do nothing.
//   - None does, and the configuration says so: the Machine is deleted.
//
// A Machine is the Node's only where spec.providerID of both is the same, the Machine's status.nodeRef names the Node, and no other
// Machine of the cluster has either. Its UID goes on record with the intent and into each write, so that the API server refuses one
// that would reach another Machine of that name.
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
	// API is how the API server of this cluster is reached, which has the Nodes.
	API *rest.Config
	// Kubeconfig is a file that says how the API server of the management cluster is reached; empty: this cluster is its own.
	Kubeconfig string
	// Cluster is the Cluster object of this cluster, in the management cluster. Its Machines are in the same namespace.
	Cluster types.NamespacedName
	// Delete: a Machine that no MachineHealthCheck selects is deleted, in place of being marked as unhealthy.
	Delete bool
	// Timeout bounds one request. Zero: 5 s.
	Timeout time.Duration
}

// Client asks Cluster API. It is safe for concurrent use.
type Client struct {
	*kubeapi.Client
	nodes *kubeapi.Client // of this cluster
	o     Options
}

// New checks the options. It asks nobody.
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
