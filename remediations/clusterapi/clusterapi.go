// Package clusterapi has the machines behind Nodes replaced by Cluster API, of which this cluster is the management cluster.
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
//
// The requests are made here, and not by client-go, which asks again by itself, follows redirects and reads answers of any size.
// Who Drydock is to the API server is client-go's part.
package clusterapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/redact"
)

// defaultTimeout is far below the 10 s in which a call must go out.
const defaultTimeout = 5 * time.Second

// Options configure a Client.
type Options struct {
	// API is how the API server is reached.
	API *rest.Config
	// Cluster is the Cluster object of this cluster. Its Machines are in the same namespace.
	Cluster types.NamespacedName
	// Delete: a Machine that no MachineHealthCheck selects is deleted, in place of being marked as unhealthy.
	Delete bool
	// Timeout bounds one request. Zero: 5 s.
	Timeout time.Duration
}

// Client asks Cluster API. It is safe for concurrent use.
type Client struct {
	o       Options
	api     *url.URL
	http    http.RoundTripper
	secrets *redact.Keyring
	page    int // objects of one page of a list
}

// New checks the options. It asks nobody.
func New(o Options) (*Client, error) {
	switch {
	case o.API == nil:
		return nil, errors.New("configuring Cluster API: there is no API server")
	case o.Cluster.Namespace == "" || o.Cluster.Name == "":
		return nil, errors.New("configuring Cluster API: the cluster is not of the form namespace/name")
	case o.Timeout < 0:
		return nil, errors.New("configuring Cluster API: the timeout is negative")
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	c := &Client{o: o, secrets: &redact.Keyring{Mark: "[secret]"}, page: perPage}
	var err error
	if c.api, _, err = rest.DefaultServerUrlFor(o.API); err != nil {
		return nil, fmt.Errorf("configuring Cluster API: reading where the API server is: %w", err)
	}
	if c.http, err = c.transport(); err != nil {
		return nil, fmt.Errorf("configuring Cluster API: %w", err)
	}
	return c, nil
}
