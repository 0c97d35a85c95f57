// Package annotation reboots machines through another program, a controller that reboots a machine
// when it sees a certain annotation. The annotation is on the Node or on the object that owns the
// Node's machine. With the preset metal3, it is on Metal3's BareMetalHost.
//
// Each write contains the UID and resourceVersion of the object that Drydock read. So the API
// server refuses the write if the object has changed. Drydock therefore writes the annotation at
// most once, and never replaces another client's value. The same write also stores the ID of the
// repair attempt. On an object that is not a Node, it also stores the Node's name.
//
// The controller may remove the annotation or report that the reboot is done. Neither proves a
// reboot. The proof is the Node's new boot ID. When the attempt has ended, Ender removes the
// remaining annotations of Drydock.
package annotation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/owners"
	"drydock.dev/drydock/remediations/providers/annotation/settings"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

const (
	nodeKey = "drydock.dev/node"
	// askedLabel is on each annotated object, so that Ender can list these objects. Nodes do not
	// get it: all of them are in the cache.
	askedLabel = "drydock.dev/asked"
)

// Client sets annotations. It is safe for concurrent use.
type Client struct {
	*kubeapi.Client
	o    settings.Annotation
	kind string
}

// New returns a Client. It sends no request.
func New(o settings.Annotation, api *rest.Config) (*Client, error) {
	of, needs := settings.Object{APIVersion: "v1", Kind: "Node"}, "check that nothing answers instead of the API server"
	if o.Object != nil {
		of, needs = *o.Object, "the controller of the machines must be installed in this cluster"
	}
	client, err := kubeapi.New(kubeapi.Options{REST: api, APIVersion: of.APIVersion, Namespace: o.Namespace, Timeout: o.Timeout, Needs: needs, Docs: "docs/providers/annotation.md"})
	if err != nil {
		return nil, fmt.Errorf("configuring reboots by annotation: %w", err)
	}
	return &Client{client, o, of.Kind}, nil
}

type object struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ProviderID string `json:"providerID"`
		hostSpec
	} `json:"spec"`
	Status struct {
		NodeRef struct {
			Name string `json:"name"`
		} `json:"nodeRef"`
		hostStatus
	} `json:"status"`
}

func (c *Client) plural() string { return strings.ToLower(c.kind) + "s" }

func ours(o *object, key string) bool {
	owns, err := owners.Annotation(&corev1.Node{ObjectMeta: o.ObjectMeta}, key)
	return err == nil && owns
}

func (c *Client) look(ctx context.Context, m engine.Machine) (*object, error) {
	find := c.owner
	switch {
	case c.o.Preset == settings.Metal3:
		find = c.host
	case c.o.Object == nil:
		find = c.node
	}
	o, err := find(ctx, m)
	if err != nil {
		return nil, err
	}
	return o, c.held(o)
}

func (c *Client) node(ctx context.Context, m engine.Machine) (*object, error) {
	n, err := c.NodeOf(ctx, m.Node, m.UID, m.ProviderID)
	if err != nil {
		return nil, err
	}
	return &object{TypeMeta: n.TypeMeta, ObjectMeta: n.ObjectMeta}, nil
}

// owner returns the object with the Node's spec.providerID. It returns an error if there is not
// exactly one, or if the object's status.nodeRef names another Node.
func (c *Client) owner(ctx context.Context, m engine.Machine) (*object, error) {
	if m.ProviderID == "" {
		return nil, kit.Refuse(kit.Machine, "the Node has no spec.providerID, so its %s cannot be identified", c.kind)
	}
	all, err := kubeapi.List[object](ctx, c.Client, c.plural(), c.kind, nil)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(one object) bool { return one.Spec.ProviderID != m.ProviderID })
	switch {
	case len(all) == 0:
		return nil, kit.Refuse(kit.Machine, "no %s in namespace %s has the spec.providerID of the Node, %s", c.kind, c.o.Namespace, c.Quote(m.ProviderID))
	case len(all) > 1:
		return nil, kit.Refuse(kit.Machine, "%s and %s both have the spec.providerID of the Node", kubeapi.Name(&all[0]), kubeapi.Name(&all[1]))
	case all[0].Status.NodeRef.Name != "" && all[0].Status.NodeRef.Name != m.Node:
		return nil, kit.Refuse(kit.Machine, "%s has another Node in status.nodeRef: %s", kubeapi.Name(&all[0]), c.Quote(all[0].Status.NodeRef.Name))
	}
	return &all[0], nil
}

func (c *Client) held(o *object) error {
	var all kit.Holds
	all.If(o.DeletionTimestamp != nil, kit.Machine, "%s is being deleted", kubeapi.Name(o))
	for _, key := range slices.Sorted(maps.Keys(o.Annotations)) {
		// A key with a suffix (KEY/SUFFIX) is also a request. With Metal3, it keeps the host
		// powered off as long as the annotation exists.
		asked := key == c.o.Key && !metav1.HasAnnotation(o.ObjectMeta, c.o.Done) || strings.HasPrefix(key, c.o.Key+"/")
		all.If(asked, kit.While, "%s is already being rebooted or kept off (annotation %s)", kubeapi.Name(o), c.Quote(key))
	}
	if c.o.Preset == settings.Metal3 {
		c.hostHeld(o, &all)
	}
	return all.Err()
}
