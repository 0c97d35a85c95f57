// Package metal3 reboots machines of Metal3 through the baremetal-operator, which owns their BMCs.
// It sets the annotation reboot.metal3.io on the BareMetalHost, as the operator documents it. The
// operator switches the host off, removes the annotation, and switches the host on again.
//
// A BareMetalHost is the Node's only if all these name each other: the Node's spec.providerID and
// the host, the host's spec.consumerRef and the Metal3Machine, the Machine's infrastructureRef and
// that Metal3Machine, and the Machine and the Node. The annotation is written to the host with that
// UID and version, so it is written at most once, and never over another client's. The attempt's ID
// and the Node's name are written with it. When the attempt has ended, Ender removes what is left
// of Drydock's.
package metal3

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// apiVersion is of BareMetalHosts.
const apiVersion = "metal3.io/v1alpha1"

// Options configure a Client.
type Options struct {
	// API is how the API server is reached.
	API *rest.Config
	// Namespace has the BareMetalHosts and the Machines.
	Namespace string
	// Timeout bounds one request. Zero: 5 s.
	Timeout time.Duration
}

// Client requests reboots from the baremetal-operator. It is safe for concurrent use.
type Client struct {
	*kubeapi.Client
	namespace string
}

// New checks the options. It makes no request.
func New(o Options) (*Client, error) {
	api, err := kubeapi.New(kubeapi.Options{
		REST: o.API, APIVersion: apiVersion, Namespace: o.Namespace, Timeout: o.Timeout,
		Needs: "Metal3's baremetal-operator must be installed in this cluster", Docs: "docs/providers/metal3.md",
	})
	if err != nil {
		return nil, fmt.Errorf("configuring Metal3: %w", err)
	}
	return &Client{api, o.Namespace}, nil
}
