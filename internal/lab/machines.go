package lab

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/lab/civosim"
)

// Machines returns the lab's nodes as a provider's machines. A test that needs another behaviour
// embeds it.
func (l *Lab) Machines() civosim.Machines { return &machines{lab: l, models: map[string]NodeSpec{}} }

type machines struct {
	lab *Lab

	mu         sync.Mutex
	controller kubernetes.Interface // a client with the identity of Civo's cloud controller
	models     map[string]NodeSpec  // the properties of each machine by its ID, for its successor
}

// Away takes the machine down.
func (m *machines) Away(ctx context.Context, in civosim.Instance) error {
	node, err := m.nodeOf(ctx, m.lab.client, in)
	if node != nil {
		m.lab.Off(node.Name)
	}
	return err
}

func (m *machines) Reboot(ctx context.Context, in civosim.Instance, bootID string, cured bool) error {
	node, err := m.nodeOf(ctx, m.lab.client, in)
	if node == nil {
		return err
	}
	return m.lab.On(ctx, node.Name, bootID, cured)
}

// nodeOf returns nil if there is none. If a Node with the machine's name was registered again, it
// belongs to another machine.
func (m *machines) nodeOf(ctx context.Context, client kubernetes.Interface, in civosim.Instance) (*corev1.Node, error) {
	node, err := client.CoreV1().Nodes().Get(ctx, in.Hostname, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Node of instance %s: %w", in.ID, err)
	}
	if node.Spec.ProviderID != in.ProviderID() {
		return nil, nil
	}
	return node, nil
}

// Remove deletes the Node of a machine that is gone, as Civo's cloud controller does. A Node with
// that name that belongs to another machine stays.
func (m *machines) Remove(ctx context.Context, in civosim.Instance) error {
	controller, err := m.cloudController()
	if err != nil {
		return err
	}
	node, err := m.nodeOf(ctx, controller, in)
	if node == nil {
		return err // no error: another client has already deleted the Node
	}
	m.remember(in.ID, model(node))
	m.lab.Break(in.Hostname)
	uid := node.UID
	err = controller.CoreV1().Nodes().Delete(ctx, in.Hostname, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the Node of instance %s: %w", in.ID, err)
	}
	return nil
}

// Add registers the Node of a new machine. Except for its UID, providerID and boot ID, it is like
// the Node that it replaces.
func (m *machines) Add(ctx context.Context, in civosim.Instance) error {
	m.mu.Lock()
	spec, known := m.models[in.Replaces]
	m.mu.Unlock()
	if !known {
		spec = NodeSpec{Pool: in.Pool}
	}
	spec.Name, spec.ProviderID = in.Hostname, in.ProviderID()
	m.remember(in.ID, spec)
	return m.lab.AddNode(ctx, spec)
}

func (m *machines) remember(id string, spec NodeSpec) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.models[id] = spec
}

// Admission recognises the user name of Civo's cloud controller.
func (m *machines) cloudController() (kubernetes.Interface, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.controller != nil {
		return m.controller, nil
	}
	config, err := m.lab.userConfig("system:cloud-controller-manager", "system:masters")
	if err != nil {
		return nil, fmt.Errorf("making the cloud controller's credentials: %w", err)
	}
	if m.controller, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making the cloud controller's client: %w", err)
	}
	return m.controller, nil
}

// model has what a provider gives each machine of the pool: labels, taints and hardware. What
// others wrote on the Node later is left out.
func model(n *corev1.Node) NodeSpec {
	spec := NodeSpec{Labels: map[string]string{}, Allocatable: n.Status.Capacity}
	for key, value := range n.Labels {
		if key != corev1.LabelHostname && !others(key) {
			spec.Labels[key] = value
		}
	}
	for _, taint := range n.Spec.Taints {
		if !others(taint.Key) {
			spec.Taints = append(spec.Taints, taint)
		}
	}
	return spec
}

// Drydock or the node lifecycle controller added it later.
func others(key string) bool {
	return strings.HasPrefix(key, "drydock.dev/") || strings.HasPrefix(key, "node.kubernetes.io/")
}
