// Package external reboots machines through remediators in the cluster: SelfNodeRemediation and
// FenceAgentsRemediation of Medik8s, Metal3Remediation, and others of the same contract.
// MachineDeletionRemediation of Medik8s replaces machines.
//
// A remediator acts for as long as a remediation object exists. Drydock makes the object from the
// template that the plan's step names. Its kind is the template's without "Template", its namespace
// is the template's, its name is the Node's, and its spec is the template's spec.template.spec.
// Annotations name the Node, the template and the attempt of Drydock that made it. A
// Metal3Remediation has the name of the Node's Machine, and belongs to it.
//
// Two objects of one name cannot exist, so the object is made at most once. Any other object about
// the Node is a hold, whether another attempt or another client made it. This applies to all kinds
// that the plans name a template for. The object's status is the remediator's opinion; the proof is
// the Node's new boot ID, or the new Machine in place of the old one.
//
// When the attempt has ended, Ender stops a remediator that is still at work, by the annotation
// that it timed out, and deletes the object. The deletion also undoes the remediator's changes:
// remediators remove their taints.
package external

import (
	"fmt"
	"slices"
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
	// Now is the clock.
	Now func() time.Time
	// Templates are the templates of the plans.
	Templates []remediations.Template
}

// Client makes and deletes remediation objects. It is safe for concurrent use.
type Client struct {
	core *kubeapi.Client
	o    Options
}

// New checks the options. It makes no request.
func New(o Options) (*Client, error) {
	core, err := kubeapi.New(kubeapi.Options{
		REST: o.API, APIVersion: "v1", Needs: "check that nothing answers in its place", Docs: "docs/providers/remediators.md", Timeout: o.Timeout,
	})
	if err != nil {
		return nil, fmt.Errorf("configuring external remediators: %w", err)
	}
	o.Templates = places(o.Templates)
	return &Client{core, o}, nil
}

// Requests returns how many requests one attempt sends at most: at most six before an object is
// made, and one after a refusal. Further requests list the objects of each further kind of the
// plans, and for Metal3's the Machines.
func (c *Client) Requests() int { return 8 + 2*max(0, len(c.o.Templates)-1) }

// places returns the templates without those whose objects are listed together with another one's.
func places(templates []remediations.Template) (out []remediations.Template) {
	for _, t := range templates {
		if !slices.ContainsFunc(out, func(o remediations.Template) bool { return samePlace(o, t) }) {
			out = append(out, t)
		}
	}
	return out
}

func samePlace(a, b remediations.Template) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Namespace == b.Namespace
}

// of returns a client for the template's group and namespace.
func (c *Client) of(t remediations.Template) *kubeapi.Client {
	return c.core.In(t.APIVersion, t.Namespace, "the remediator that the template belongs to must be installed")
}
