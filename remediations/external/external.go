// Package external has machines rebooted by remediators that the cluster has: SelfNodeRemediation and FenceAgentsRemediation of
// Medik8s, Metal3Remediation, and others of the same contract. MachineDeletionRemediation of Medik8s replaces them.
//
// A remediator acts for as long as a remediation object exists. Drydock makes it from the template that the plan's step names: its
// kind is the template's without "Template", its namespace is the template's, its name is the Node's, and its spec is the template's
// spec.template.spec. The annotations say which Node is meant, which template it is of, and which attempt of Drydock's made it. A
// Metal3Remediation has the name of the Node's Machine, and belongs to it.
//
// Two objects of one name cannot exist, so the object is made at most once. Any object about the Node that another attempt or
// somebody else made is a hold. What the object's status says is the remediator's opinion; the proof is the Node's new boot ID, or the
// Machine that came for the old one.
//
// When the attempt is over, Ender stops a remediator that is still at work, by the annotation that says that it timed out, and deletes
// the object. The deletion also undoes: remediators take their taints off.
package external

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/kubeapi"
	"drydock.dev/drydock/remediations"
)

// Options configure a Client.
type Options struct {
	// API is how the API server is reached.
	API *rest.Config
	// Timeout bounds one request. Zero: 5 s.
	Timeout time.Duration
	// Now is the time.
	Now func() time.Time
}

// Client makes and deletes remediation objects. It is safe for concurrent use.
type Client struct {
	core *kubeapi.Client
	o    Options
}

// New checks the options. It asks nobody.
func New(o Options) (*Client, error) {
	core, err := kubeapi.New(kubeapi.Options{
		REST: o.API, APIVersion: "v1", Needs: "check that nothing answers in its place", Docs: "docs/external.md", Timeout: o.Timeout,
	})
	if err != nil {
		return nil, fmt.Errorf("configuring external remediators: %w", err)
	}
	return &Client{core, o}, nil
}

// of is a client of the template's group and namespace.
func (c *Client) of(t remediations.Template) *kubeapi.Client {
	return c.core.In(t.APIVersion, t.Namespace, "the remediator that the template belongs to must be installed")
}
