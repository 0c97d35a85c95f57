package annotation

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

const (
	pausedKey    = "baremetalhost.metal3.io/paused"
	detachedKey  = "baremetalhost.metal3.io/detached"
	consumerKind = "Metal3Machine"
	servicing    = "servicing" // metal3-io/baremetal-operator apis/metal3.io/v1alpha1/baremetalhost_types.go
)

type hostSpec struct {
	Online      bool `json:"online"`
	ConsumerRef struct {
		Kind      string `json:"kind"`
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"consumerRef"`
}

type hostStatus struct {
	PoweredOn bool `json:"poweredOn"`
	// OperationalStatus is "servicing" while the operator changes the firmware or its settings. The
	// provisioning state stays "provisioned" then.
	OperationalStatus string `json:"operationalStatus"`
	ErrorType         string `json:"errorType"`
	ErrorMessage      string `json:"errorMessage"`
	Provisioning      struct {
		State string `json:"state"`
	} `json:"provisioning"`
}

// host returns the BareMetalHost of the Node. It requires that these references agree:
//   - The Node's spec.providerID names the host and the Metal3Machine.
//   - The host's spec.consumerRef names the Metal3Machine.
//   - The Machine's infrastructureRef names the Metal3Machine.
//   - The Machine and the Node name each other.
func (c *Client) host(ctx context.Context, m engine.Machine) (*object, error) {
	id, is := strings.CutPrefix(m.ProviderID, "metal3://")
	parts := strings.Split(id, "/")
	if !is || len(parts) != 3 || parts[0] != c.o.Namespace {
		return nil, kit.Refuse(kit.Machine, "the Node's spec.providerID is %s instead of metal3://%s/HOST/METAL3MACHINE, so its BareMetalHost cannot be identified", c.Quote(m.ProviderID), c.o.Namespace)
	}
	machine, err := c.IdleMachineOf(ctx, c.o.Namespace, m.Node, m.ProviderID)
	switch {
	case err != nil:
		return nil, err
	case machine.Spec.InfrastructureRef.Kind != consumerKind || machine.Spec.InfrastructureRef.Name != parts[2]:
		return nil, kit.Refuse(kit.Machine, "Machine %s has the infrastructure %s, but the Node's spec.providerID has the %s %s", machine.Name,
			c.Quote(machine.Spec.InfrastructureRef.Kind+" "+machine.Spec.InfrastructureRef.Name), consumerKind, c.Quote(parts[2]))
	}
	all, err := kubeapi.List[object](ctx, c.Client, c.plural(), c.kind, nil)
	if err != nil {
		return nil, err
	}
	return c.pick(all, parts[1], parts[2])
}

// pick returns an error if another host has the same name or the same consumer. consumer is the
// name of a Metal3Machine.
func (c *Client) pick(all []object, name, consumer string) (*object, error) {
	all = slices.DeleteFunc(all, func(one object) bool { return one.Name != name && !one.consumes(consumer) })
	switch {
	case len(all) == 0:
		return nil, kit.Refuse(kit.Machine, "there is no BareMetalHost %s in namespace %s", c.Quote(name), c.o.Namespace)
	case len(all) > 1:
		return nil, kit.Refuse(kit.Machine, "%s and %s could both be the Node's: each has the name in the Node's spec.providerID, or has the %s %s as its consumer", kubeapi.Name(&all[0]), kubeapi.Name(&all[1]), consumerKind, c.Quote(consumer))
	case all[0].Name != name || !all[0].consumes(consumer):
		return nil, kit.Refuse(kit.Machine, "%s has the consumer %s, but the Node's spec.providerID has the host %s and the %s %s", kubeapi.Name(&all[0]),
			c.Quote(all[0].Spec.ConsumerRef.Kind+" "+all[0].Spec.ConsumerRef.Name), c.Quote(name), consumerKind, c.Quote(consumer))
	}
	return &all[0], nil
}

func (o *object) consumes(consumer string) bool {
	r := o.Spec.ConsumerRef
	return r.Kind == consumerKind && r.Name == consumer && (r.Namespace == "" || r.Namespace == o.Namespace)
}

func (c *Client) hostHeld(h *object, all *kit.Holds) {
	name, state, of := kubeapi.Name(h), h.Status.Provisioning.State, h.Status
	for _, key := range []string{pausedKey, detachedKey} {
		all.If(metav1.HasAnnotation(h.ObjectMeta, key), kit.Machine, "%s has the annotation %s, so the baremetal-operator ignores it", name, key)
	}
	all.If(state != "provisioned" && state != "externally provisioned", kit.Machine, "%s is in the state %s, so the baremetal-operator does not reboot it", name, c.Quote(state))
	all.If(!h.Spec.Online, kit.Machine, "%s is switched off on purpose (spec.online is false)", name)
	all.If(of.ErrorType != "", kit.Machine, "%s has the error %s: %s", name, c.Quote(of.ErrorType), c.Quote(of.ErrorMessage))
	all.If(of.OperationalStatus == servicing, kit.While, "%s is being serviced (status.operationalStatus is %q): the baremetal-operator changes its firmware or firmware settings", name, servicing)
	all.If(!of.PoweredOn, kit.While, "%s is off according to the baremetal-operator, and Drydock reboots only running machines", name)
}
