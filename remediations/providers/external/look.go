package external

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

func (c *Client) look(ctx context.Context, m engine.Machine) (*object, *corev1.Node, error) {
	if m.Template == (remediations.Template{}) {
		return nil, nil, kit.Refuse(kit.Machine, "the request names no template; request the step by a policy whose plan has it")
	}
	n, err := c.core.NodeOf(ctx, m.Node, m.UID, m.ProviderID)
	if err != nil {
		return nil, nil, err
	}
	if n.Labels[excludeKey] == "true" {
		return nil, nil, kit.Refuse(kit.Machine, "the Node has the label %s=true, so remediators ignore it; remove the label", excludeKey)
	}
	t := m.Template
	if kindOf(t) == selfNode && n.Annotations[rebootableKey] != "true" {
		return nil, nil, kit.Refuse(kit.Machine, "the Node's annotation %s is %s, so the remediator's agent would never reboot the Node; check that the agent runs there",
			rebootableKey, c.core.Quote(n.Annotations[rebootableKey]))
	}
	api := c.of(t)
	var template object
	if err := api.Get(ctx, plural(t.Kind)+"/"+t.Name, t.Kind, &template); errors.Is(err, kubeapi.ErrNotFound) {
		return nil, nil, kit.Refuse(kit.Setup, "%s does not exist; create it, or correct the plan", t)
	} else if err != nil {
		return nil, nil, err
	}
	spec, err := specOf(&template)
	if err != nil {
		return nil, nil, kit.Refuse(kit.Setup, "%s", err)
	}
	made := &object{
		TypeMeta: metav1.TypeMeta{APIVersion: t.APIVersion, Kind: kindOf(t)},
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, Namespace: t.Namespace, Labels: map[string]string{madeLabel: madeBy},
			Annotations: map[string]string{nodeKey: n.Name, templateKey: t.Name, attemptKey: m.Attempt},
		},
		Spec: spec,
	}
	if made.Kind == metal3 {
		if err := c.own(ctx, made, n, t); err != nil {
			return nil, nil, err
		}
	}
	return made, n, c.alone(ctx, t, made.Name, n)
}

func (c *Client) alone(ctx context.Context, own remediations.Template, name string, n *corev1.Node) error {
	if err := c.free(ctx, own, name, n); err != nil {
		return err
	}
	for _, t := range c.o.Templates {
		if samePlace(t, own) {
			continue
		}
		if err := c.free(ctx, t, "", n); err != nil {
			return err
		}
	}
	return nil
}

// name is empty if the new object is of another kind.
func (c *Client) free(ctx context.Context, t remediations.Template, name string, n *corev1.Node) error {
	kind := kindOf(t)
	all, err := kubeapi.List[object](ctx, c.of(t), plural(kind), kind, nil)
	if err != nil {
		if name == "" && c.unserved(ctx, t) {
			return nil
		}
		return err
	}
	if name == "" && kind == metal3 && len(all) > 0 {
		// Cluster API makes objects that have the Machine's name, and no annotation with the Node's
		// name.
		switch machine, err := c.core.MachineOf(ctx, t.Namespace, n.Name, n.Spec.ProviderID); {
		case err == nil:
			name = machine.Name
		case !errors.Is(err, kubeapi.ErrNotFound):
			return err
		}
	}
	for i := range all {
		one := &all[i]
		switch {
		case one.Name != name && one.about() != n.Name:
		case one.Annotations[attemptKey] != "":
			return kit.Refuse(kit.While, "%s of attempt %s still exists; Drydock deletes it, and its remediator must remove its finalizers", kubeapi.Name(one), c.core.Quote(one.Annotations[attemptKey]))
		default:
			return kit.Refuse(kit.While, "%s already exists, and Drydock did not make it: another program has requested a repair of the machine", kubeapi.Name(one))
		}
	}
	return nil
}

// If the API server does not know the template's kind, there are no objects of this kind.
func (c *Client) unserved(ctx context.Context, t remediations.Template) bool {
	a := c.of(t).Send(ctx, kubeapi.Request{Method: http.MethodGet, Path: plural(kindOf(t)), Query: url.Values{"limit": {"1"}}})
	return a.Err == nil && a.Own == nil && a.Status == http.StatusNotFound
}

// Metal3 finds the host by the object's name and owner, which must be the Node's Machine in the
// template's namespace.
func (c *Client) own(ctx context.Context, made *object, n *corev1.Node, t remediations.Template) error {
	one, err := c.core.IdleMachineOf(ctx, t.Namespace, n.Name, n.Spec.ProviderID)
	if err != nil {
		return err
	}
	made.Name = one.Name
	made.OwnerReferences = []metav1.OwnerReference{{APIVersion: kubeapi.MachineVersion, Kind: "Machine", Name: one.Name, UID: one.UID}}
	return nil
}
