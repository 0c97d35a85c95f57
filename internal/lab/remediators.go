package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	selfNodeGroup = "self-node-remediation.medik8s.io"
	// On a SelfNodeRemediation from its remediator's first look until the remediator is done.
	selfNodeFinalizer = selfNodeGroup + "/snr-finalizer"

	fenceAgentsGroup     = "fence-agents-remediation.medik8s.io"
	fenceAgentsFinalizer = fenceAgentsGroup + "/far-finalizer"
	// FenceAgentsTaint is the key of a Node's taint while FenceAgentsRemediation repairs it.
	FenceAgentsTaint = "medik8s.io/remediation"
)

// SelfNodeRemediations is the resource of SelfNodeRemediation.
var SelfNodeRemediations = schema.GroupVersionResource{Group: selfNodeGroup, Version: "v1alpha1", Resource: "selfnoderemediations"}

// OpenShift's Machines and the MachineSets that own them. All objects are in one namespace.
var (
	OpenShiftMachines    = schema.GroupVersionResource{Group: "machine.openshift.io", Version: "v1beta1", Resource: "machines"}
	OpenShiftMachineSets = OpenShiftMachines.GroupVersion().WithResource("machinesets")
)

// AddOpenShiftMachineKinds applies kinds with the names of OpenShift's Machine API and their
// namespace. They accept any fields, and no controller acts on them.
func (l *Lab) AddOpenShiftMachineKinds(ctx context.Context) error {
	_, err := l.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-machine-api"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return l.AddAnyKinds(ctx, OpenShiftMachines.GroupVersion(), "Machine", "MachineSet")
}

// AddAnyKinds applies kinds that accept any fields, and returns when the API server serves them.
func (l *Lab) AddAnyKinds(ctx context.Context, of schema.GroupVersion, kinds ...string) error {
	for _, kind := range kinds {
		text, err := yaml.Marshal(labKind(of.Group, of.Version, kind))
		if err != nil {
			return err
		}
		if err := l.addKind(ctx, text); err != nil {
			return fmt.Errorf("adding the kind %s: %w", kind, err)
		}
	}
	return nil
}

// Remediator simulates SelfNodeRemediation or FenceAgentsRemediation by its contract. It adds a
// finalizer and Processing=True to an object, reboots the object's Node, and sets Succeeded=True.
// It removes its finalizer from a deleted object. The Node of a FenceAgentsRemediation has a taint
// from the reboot until the object is deleted.
type Remediator struct {
	lab      *Lab
	o        RemediatorOptions
	api      dynamic.NamespaceableResourceInterface
	mu       sync.Mutex
	rebooted []string
	// Finished objects: rebooted or timed out. The cache may not yet show the conditions that the
	// remediator has set for them.
	done map[types.UID]bool
	// stopped timed out. claimed have Succeeded=True, but their Nodes were not rebooted.
	stopped, claimed []string
}

// RemediatorOptions select the remediator, and the Nodes where it fails.
type RemediatorOptions struct {
	// Kind is SelfNodeRemediation, the default, or FenceAgentsRemediation.
	Kind string
	// Idle are Nodes that the remediator never reboots, although it adds its finalizer. Claims are
	// Nodes that it reports as rebooted without rebooting them.
	Idle, Claims []string
}

func (o RemediatorOptions) fences() bool { return o.Kind == "FenceAgentsRemediation" }

func (o RemediatorOptions) finalizer() string {
	if o.fences() {
		return fenceAgentsFinalizer
	}
	return selfNodeFinalizer
}

// StartRemediator starts a simulated remediator until ctx ends. The CRDs of its kind must be
// installed first.
func (l *Lab) StartRemediator(ctx context.Context, o RemediatorOptions) (*Remediator, error) {
	objects, err := dynamic.NewForConfig(l.AdminConfig())
	if err != nil {
		return nil, err
	}
	o.Kind = cmp.Or(o.Kind, "SelfNodeRemediation")
	of := Remediations[o.Kind].WithResource(pluralOf(o.Kind))
	r := &Remediator{lab: l, o: o, api: objects.Resource(of), done: map[types.UID]bool{}}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(objects, time.Second) // after an error, the next resync tries again
	settle := func(o any) {
		if one, ok := o.(*unstructured.Unstructured); ok {
			if err := r.settle(ctx, one); err != nil && ctx.Err() == nil {
				l.say("%s %s: %v", one.GetKind(), one.GetName(), err)
			}
		}
	}
	_, err = factory.ForResource(of).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: settle, UpdateFunc: func(_, o any) { settle(o) },
	})
	factory.Start(ctx.Done())
	return r, err
}

// Rebooted returns the attempts of the objects whose Node was rebooted, in order.
func (r *Remediator) Rebooted() []string { return r.noted(&r.rebooted) }

// Stopped returns the attempts of the objects that timed out while the remediator was working.
func (r *Remediator) Stopped() []string { return r.noted(&r.stopped) }

// Claimed returns the attempts of the objects with Succeeded=True without a reboot.
func (r *Remediator) Claimed() []string { return r.noted(&r.claimed) }

func (r *Remediator) noted(in *[]string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, *in...)
}

func (r *Remediator) note(in *[]string, attempt string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*in = append(*in, attempt)
}

func (r *Remediator) settle(ctx context.Context, one *unstructured.Unstructured) error {
	patch := func(text string, of ...string) error {
		_, err := r.api.Namespace(one.GetNamespace()).Patch(ctx, one.GetName(), types.MergePatchType, []byte(text), metav1.PatchOptions{}, of...)
		return err
	}
	node, attempt := one.GetAnnotations()["remediation.medik8s.io/node-name"], one.GetAnnotations()["drydock.dev/attempt"]
	_, timedOut := one.GetAnnotations()["remediation.medik8s.io/nhc-timed-out"]
	if timedOut && !r.done[one.GetUID()] {
		r.note(&r.stopped, attempt)
		r.done[one.GetUID()] = true
	}
	switch processing := conditionOf(one, "Processing"); {
	case one.GetDeletionTimestamp() != nil:
		if len(one.GetFinalizers()) == 0 {
			return nil
		}
		if err := r.taint(ctx, node, false); err != nil {
			return err
		}
		return patch(`{"metadata":{"finalizers":null}}`)
	case len(one.GetFinalizers()) == 0:
		return patch(fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, r.o.finalizer()))
	case processing == "":
		return patch(r.says("True", "Unknown"), "status")
	case processing == "False":
		return nil
	case timedOut:
		return patch(r.says("False", "False"), "status")
	case slices.Contains(r.o.Idle, node):
		return nil
	}
	if !r.done[one.GetUID()] {
		if err := r.act(ctx, node, attempt); err != nil {
			return err
		}
		r.done[one.GetUID()] = true
	}
	return patch(r.says("False", "True"), "status")
}

func (r *Remediator) act(ctx context.Context, node, attempt string) error {
	if err := r.taint(ctx, node, true); err != nil {
		return err
	}
	if slices.Contains(r.o.Claims, node) {
		r.note(&r.claimed, attempt)
		return nil
	}
	r.lab.Off(node)
	if err := r.lab.On(ctx, node, uuid.NewString(), true); err != nil {
		return err
	}
	r.note(&r.rebooted, attempt)
	return nil
}

// Source: medik8s/fence-agents-remediation pkg/utils/taints.go.
func (r *Remediator) taint(ctx context.Context, node string, set bool) error {
	if !r.o.fences() {
		return nil
	}
	nodes := r.lab.Client().CoreV1().Nodes()
	n, err := nodes.Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == FenceAgentsTaint })
	if set {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: FenceAgentsTaint, Value: "fence-agents-remediation", Effect: corev1.TaintEffectNoExecute})
	}
	_, err = nodes.Update(ctx, n, metav1.UpdateOptions{})
	return err
}

func (r *Remediator) says(processing, succeeded string) string {
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind, status string) string {
		return fmt.Sprintf(`{"type":%q,"status":%q,"reason":"Lab","message":"","lastTransitionTime":%q}`, kind, status, now)
	}
	all := condition("Processing", processing) + "," + condition("Succeeded", succeeded)
	if r.o.fences() {
		all += "," + condition("FenceAgentActionSucceeded", succeeded)
	}
	return `{"status":{"conditions":[` + all + `]}}`
}

// conditionOf returns "" if there is no such condition.
func conditionOf(one *unstructured.Unstructured, kind string) string {
	all, _, _ := unstructured.NestedSlice(one.Object, "status", "conditions")
	for _, c := range all {
		if c, ok := c.(map[string]any); ok && c["type"] == kind {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}
