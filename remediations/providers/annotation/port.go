package annotation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Rebooter sets an annotation, and a controller reboots the machine.
type Rebooter struct{ *Client }

// Survey returns every reason against the annotation, and changes nothing.
func (c Rebooter) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	if _, err := c.look(ctx, m); err != nil {
		return c.Sentence(err, "the %s of node %q", c.kind, m.Node).Survey()
	}
	return remediations.Survey{}
}

// Act implements engine.Actuator.
func (c Rebooter) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	outcome, err := c.act(ctx, m, mayStill)
	return c.Ended(outcome, err, fmt.Sprintf("rebooting node %q by annotation of its %s", m.Node, c.kind), "the annotation may have been written")
}

func (c Rebooter) act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if m.Attempt == "" {
		return remediations.CallRefused, kit.Refuse(kit.Machine, "the attempt has no ID, which the object needs")
	}
	o, err := c.look(ctx, m)
	if err != nil {
		return remediations.CallRefused, err
	}
	return c.Change(ctx, c.changing(o, map[string]any{c.o.Key: c.o.ValueOf(m.Soft), remediations.AttemptKey: m.Attempt}, m.Node, "true"), mayStill, func(body []byte) bool {
		var shown object
		return json.Unmarshal(body, &shown) == nil && shown.Kind == c.kind && shown.UID == o.UID && shown.Annotations[remediations.AttemptKey] == m.Attempt
	})
}

// A nil value removes the annotation. The API server refuses the request if the object was replaced
// or has changed since it was read. The request also removes the controller's answer (the setting
// done), which belongs to an earlier reboot.
func (c *Client) changing(o *object, annotations map[string]any, node, label any) kubeapi.Request {
	meta := map[string]any{"uid": o.UID, "resourceVersion": o.ResourceVersion, "annotations": annotations}
	if c.o.Done != "" {
		annotations[c.o.Done] = nil
	}
	if c.o.Object != nil {
		annotations[nodeKey], meta["labels"] = node, map[string]any{askedLabel: label}
	}
	return kubeapi.Request{
		Method: http.MethodPatch, Path: c.plural() + "/" + o.Name, Query: url.Values{"fieldManager": {remediations.FieldManager}},
		ContentType: "application/merge-patch+json", Body: map[string]any{"metadata": meta},
	}
}

// Ender removes Drydock's annotations when a repair attempt has ended. It lists the objects at each
// run, so it also finds annotations that a crash left behind.
type Ender struct {
	*Client
	// Registry has the repair steps of other programs. Records on Nodes may name them.
	Registry remediations.Registry
	Nodes    func(context.Context) ([]*corev1.Node, error)
}

// End removes Drydock's annotations from all objects whose attempt has ended, even if no controller
// has acted on them yet. It keeps values that another client has set or changed. The error joins
// the errors of all objects.
func (e Ender) End(ctx context.Context) error {
	all, err := e.written(ctx)
	if err != nil {
		return e.Sentence(err, "listing the %ss that Drydock has written to", e.kind)
	}
	var out []error
	for i := range all {
		if err := e.end(ctx, &all[i]); err != nil {
			out = append(out, e.Sentence(err, "removing the annotations of an ended attempt from %s", kubeapi.Name(&all[i])))
		}
	}
	return errors.Join(out...)
}

func (e Ender) written(ctx context.Context) (all []object, err error) {
	if e.o.Object != nil {
		return kubeapi.List[object](ctx, e.Client.Client, e.plural(), e.kind, url.Values{"labelSelector": {askedLabel}})
	}
	nodes, err := e.Nodes(ctx)
	for _, n := range nodes {
		if n.Annotations[remediations.AttemptKey] == "" {
			continue
		}
		var one object // the cache has no managedFields, which ours needs
		if err := e.Get(ctx, "nodes/"+n.Name, "Node", &one); errors.Is(err, kubeapi.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, err
}

func (e Ender) end(ctx context.Context, o *object) error {
	if !ours(o, remediations.AttemptKey) {
		return nil // another client has set the annotation
	}
	node := o.Name
	if e.o.Object != nil {
		node = o.Annotations[nodeKey]
	}
	over, _, err := e.Over(ctx, e.Registry, node, o.Annotations[remediations.AttemptKey])
	if err != nil || !over {
		return err
	}
	left := map[string]any{remediations.AttemptKey: nil}
	if ours(o, e.o.Key) {
		left[e.o.Key] = nil
	}
	return e.TakeBack(ctx, e.changing(o, left, nil, nil))
}
