// Package external reboots and replaces machines through other programs in the cluster, called
// remediators. SelfNodeRemediation and FenceAgentsRemediation of Medik8s, Metal3Remediation, and
// others with the same contract reboot machines. MachineDeletionRemediation of Medik8s replaces
// machines.
//
// A remediator acts as long as a remediation object for the Node exists. The step in the plan names
// a template, and Drydock makes the object from it:
//   - kind: the template's kind without "Template"
//   - namespace: the template's
//   - name: the Node's; for a Metal3Remediation, the name of the Node's Machine, which owns it
//   - spec: the template's spec.template.spec
//   - annotations: the Node, the template, and Drydock's attempt
//
// The API server refuses a second object of the same name, so Drydock makes the object at most
// once. If another object for the Node exists, Drydock makes none, even if an earlier attempt of
// Drydock made that object. This applies to all kinds that have a template in the plans. The
// object's status is not a proof. The proof is the Node's new boot ID, or the new Machine.
//
// When the attempt has ended, Ender deletes the object. If the remediator may still be working,
// Ender first sets an annotation at which remediators stop. At the deletion, remediators undo their
// own changes. For example, they remove their taints.
package external

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/external/settings"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Options configure a Client: the section providers.external, and values that are not in the
// configuration.
type Options struct {
	settings.External
	// API is the connection to the API server.
	API *rest.Config
	Now func() time.Time
	// Templates has the templates that the plans name.
	Templates []remediations.Template
}

// Client makes and deletes remediation objects. It is safe for concurrent use.
type Client struct {
	core *kubeapi.Client
	o    Options
}

// New checks the options. It sends no request.
func New(o Options) (*Client, error) {
	core, err := kubeapi.New(kubeapi.Options{
		REST: o.API, APIVersion: "v1", Needs: "check that nothing answers instead of the API server", Docs: "docs/providers/remediators.md", Timeout: o.Timeout,
	})
	if err != nil {
		return nil, fmt.Errorf("configuring external remediators: %w", err)
	}
	o.Templates = places(o.Templates)
	return &Client{core, o}, nil
}

// Requests returns the maximum number of requests that one attempt sends: up to six before the
// object is made, one to make it, and one after a refusal. Each further kind in the plans adds one
// request that lists its objects. If the kind is Metal3Remediation, it adds a second request, for
// the Machines.
func (c *Client) Requests() int { return 8 + 2*max(0, len(c.o.Templates)-1) }

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

func (c *Client) of(t remediations.Template) *kubeapi.Client {
	return c.core.In(t.APIVersion, t.Namespace, "the remediator of the template must be installed")
}
