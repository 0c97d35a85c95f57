package metal3

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/owners"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

const (
	// rebootKey requests one reboot; the operator removes it. A key with this prefix and a suffix
	// keeps the host off for as long as it is there.
	rebootKey    = "reboot.metal3.io"
	keepsOffKey  = rebootKey + "/"
	pausedKey    = "baremetalhost.metal3.io/paused"
	detachedKey  = "baremetalhost.metal3.io/detached"
	attemptKey   = "drydock.dev/attempt"
	nodeKey      = "drydock.dev/node"
	madeLabel    = "app.kubernetes.io/managed-by"
	madeBy       = "drydock"
	consumerKind = "Metal3Machine"
	servicing    = "servicing" // metal3-io/baremetal-operator apis/metal3.io/v1alpha1/baremetalhost_types.go
)

// host holds the fields of a BareMetalHost that are read.
type host struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Online      bool `json:"online"`
		ConsumerRef struct {
			Kind      string `json:"kind"`
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"consumerRef"`
	} `json:"spec"`
	Status struct {
		PoweredOn bool `json:"poweredOn"`
		// OperationalStatus is "servicing" while the operator changes firmware or its settings. The state stays "provisioned".
		OperationalStatus string `json:"operationalStatus"`
		ErrorType         string `json:"errorType"`
		ErrorMessage      string `json:"errorMessage"`
		Provisioning      struct {
			State string `json:"state"`
		} `json:"provisioning"`
	} `json:"status"`
}

func (h *host) name() string { return "BareMetalHost " + h.Namespace + "/" + h.Name }

// ours reports that Drydock alone has set the annotation.
func (h *host) ours(annotation string) bool {
	owns, err := owners.Annotation(&corev1.Node{ObjectMeta: h.ObjectMeta}, annotation)
	return err == nil && owns
}

// look finds the node's host and changes nothing. Its errors say why no reboot may be requested
// now.
func (c *Client) look(ctx context.Context, m engine.Machine) (*host, error) {
	id, is := strings.CutPrefix(m.ProviderID, "metal3://")
	parts := strings.Split(id, "/")
	if !is || len(parts) != 3 || parts[0] != c.namespace {
		return nil, kit.Refuse(kit.Machine, "the Node's spec.providerID is %s, not metal3://%s/HOST/METAL3MACHINE, so its BareMetalHost cannot be identified", c.Quote(m.ProviderID), c.namespace)
	}
	machine, err := c.MachineOf(ctx, c.namespace, m.Node, m.ProviderID)
	switch {
	case errors.Is(err, kubeapi.ErrNotFound):
		return nil, kit.Refuse(kit.Machine, "no Machine in namespace %s names the Node in status.nodeRef", c.namespace)
	case err != nil:
		return nil, err
	case machine.Spec.InfrastructureRef.Kind != consumerKind || machine.Spec.InfrastructureRef.Name != parts[2]:
		return nil, kit.Refuse(kit.Machine, "Machine %s has the infrastructure %s, and the Node's spec.providerID names the %s %s", machine.Name,
			c.Quote(machine.Spec.InfrastructureRef.Kind+" "+machine.Spec.InfrastructureRef.Name), consumerKind, c.Quote(parts[2]))
	}
	all, err := kubeapi.List[host](ctx, c.Client, "baremetalhosts", "BareMetalHost", nil)
	if err != nil {
		return nil, err
	}
	h, err := c.pick(all, parts[1], parts[2])
	if err != nil {
		return nil, err
	}
	if update := c.InPlaceUpdate(machine.Annotations, machine.Status.Conditions); update != "" {
		return nil, kit.Refuse(kit.While, "Machine %s %s", machine.Name, update)
	}
	return h, c.held(h)
}

// pick returns the only host of that name and consumer.
func (c *Client) pick(all []host, name, consumer string) (*host, error) {
	var found []*host
	for i := range all {
		if one := &all[i]; one.Name == name || one.consumes(consumer) {
			found = append(found, one)
		}
	}
	switch {
	case len(found) == 0:
		return nil, kit.Refuse(kit.Machine, "there is no BareMetalHost %s in namespace %s", c.Quote(name), c.namespace)
	case len(found) > 1:
		return nil, kit.Refuse(kit.Machine, "%s and %s could both be the Node's: one has the name in its spec.providerID, or each has the %s %s as its consumer", found[0].name(), found[1].name(), consumerKind, c.Quote(consumer))
	case found[0].Name != name || !found[0].consumes(consumer):
		return nil, kit.Refuse(kit.Machine, "%s has the consumer %s, and the Node's spec.providerID names the host %s and the %s %s", found[0].name(),
			c.Quote(found[0].Spec.ConsumerRef.Kind+" "+found[0].Spec.ConsumerRef.Name), c.Quote(name), consumerKind, c.Quote(consumer))
	}
	return found[0], nil
}

func (h *host) consumes(consumer string) bool {
	r := h.Spec.ConsumerRef
	return r.Kind == consumerKind && r.Name == consumer && (r.Namespace == "" || r.Namespace == h.Namespace)
}

// held names everything that forbids a reboot, at once; nil: nothing does.
func (c *Client) held(h *host) error {
	var out []string
	why := kit.While
	add := func(of kit.Concern, format string, args ...any) {
		out = append(out, h.name()+" "+fmt.Sprintf(format, args...))
		if of == kit.Machine {
			why = of
		}
	}
	if h.DeletionTimestamp != nil {
		add(kit.Machine, "is being deleted")
	}
	for _, key := range []string{pausedKey, detachedKey} {
		if _, there := h.Annotations[key]; there {
			add(kit.Machine, "has the annotation %s, so the baremetal-operator leaves it alone", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(h.Annotations)) {
		if key == rebootKey || strings.HasPrefix(key, keepsOffKey) {
			add(kit.While, "is being rebooted or kept off already (annotation %s)", c.Quote(key))
		}
	}
	switch state := h.Status.Provisioning.State; {
	case state != "provisioned" && state != "externally provisioned":
		add(kit.Machine, "is in the state %s, and the baremetal-operator reboots nothing then", c.Quote(state))
	case !h.Spec.Online:
		add(kit.Machine, "is switched off on purpose (spec.online is false)")
	case h.Status.ErrorType != "":
		add(kit.Machine, "has the error %s: %s", c.Quote(h.Status.ErrorType), c.Quote(h.Status.ErrorMessage))
	case h.Status.OperationalStatus == servicing:
		add(kit.While, "is being serviced (status.operationalStatus is %s): the baremetal-operator changes its firmware or firmware settings", c.Quote(servicing))
	case !h.Status.PoweredOn:
		add(kit.While, "is off, the baremetal-operator says, and what is off is not rebooted")
	}
	if out == nil {
		return nil
	}
	return kit.Refuse(why, "%s", strings.Join(out, "; "))
}
