package lab

import (
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
	"sigs.k8s.io/yaml"
)

const (
	selfNodeGroup = "self-node-remediation.medik8s.io"
	// selfNodeFinalizer is what a SelfNodeRemediation has from when it is seen until its remediator is done.
	selfNodeFinalizer = selfNodeGroup + "/snr-finalizer"
)

// SelfNodeRemediations are the objects of SelfNodeRemediation.
var SelfNodeRemediations = schema.GroupVersionResource{Group: selfNodeGroup, Version: "v1alpha1", Resource: "selfnoderemediations"}

// Remediations are the kinds of remediation objects of Medik8s and of Metal3.
var Remediations = map[string]schema.GroupVersion{
	"SelfNodeRemediation":        {Group: selfNodeGroup, Version: "v1alpha1"},
	"FenceAgentsRemediation":     {Group: "fence-agents-remediation.medik8s.io", Version: "v1alpha1"},
	"MachineDeletionRemediation": {Group: "machine-deletion-remediation.medik8s.io", Version: "v1alpha1"},
	"Metal3Remediation":          {Group: infraGroup, Version: "v1beta1"},
}

// Machines of OpenShift's Machine API are in one namespace, and these are they and the sets that own them.
var (
	OpenShiftMachines    = schema.GroupVersionResource{Group: "machine.openshift.io", Version: "v1beta1", Resource: "machines"}
	OpenShiftMachineSets = OpenShiftMachines.GroupVersion().WithResource("machinesets")
)

// AddRemediatorKinds applies kinds of the names of Medik8s' and Metal3's, which hold anything, and returns when the API server serves
// them. No remediator runs.
func (l *Lab) AddRemediatorKinds(ctx context.Context) error {
	for kind, of := range Remediations {
		if err := l.addLabKinds(ctx, of, kind, kind+"Template"); err != nil {
			return err
		}
	}
	return nil
}

// AddOpenShiftMachineKinds applies kinds of the names of OpenShift's Machine API's, which hold anything, and their namespace. Nobody acts on
// them.
func (l *Lab) AddOpenShiftMachineKinds(ctx context.Context) error {
	_, err := l.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-machine-api"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return l.addLabKinds(ctx, OpenShiftMachines.GroupVersion(), "Machine", "MachineSet")
}

func (l *Lab) addLabKinds(ctx context.Context, of schema.GroupVersion, kinds ...string) error {
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

// Remediator plays SelfNodeRemediation by its contract: it takes an object up with a finalizer and Processing=True, reboots the Node
// that the object names, says Succeeded=True, and lets a deleted object go.
type Remediator struct {
	lab *Lab
	// idle names the Nodes that it reboots never, though it takes their objects up.
	idle []string
	api  dynamic.NamespaceableResourceInterface
	mu   sync.Mutex
	// rebooted are the attempts whose Nodes it has rebooted.
	rebooted []string
	// done are the objects that it has rebooted for, or was told that they had timed out: its cache may not yet show what it has said of one.
	done map[types.UID]bool
	// stopped are those that it was told had timed out.
	stopped []string
}

// StartRemediator starts one, whose kinds are there. It ends with the context. The Nodes that it is idle about it never reboots.
func (l *Lab) StartRemediator(ctx context.Context, idle ...string) (*Remediator, error) {
	client, err := dynamic.NewForConfig(l.AdminConfig())
	if err != nil {
		return nil, err
	}
	r := &Remediator{lab: l, idle: idle, api: client.Resource(SelfNodeRemediations), done: map[types.UID]bool{}}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, time.Second) // what fails is tried again
	settle := func(o any) {
		if one, ok := o.(*unstructured.Unstructured); ok {
			if err := r.settle(ctx, one); err != nil && ctx.Err() == nil {
				l.say("SelfNodeRemediation %s: %v", one.GetName(), err)
			}
		}
	}
	_, err = factory.ForResource(SelfNodeRemediations).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: settle, UpdateFunc: func(_, o any) { settle(o) },
	})
	factory.Start(ctx.Done())
	return r, err
}

// Rebooted are the attempts of the objects whose Node it has rebooted, in order.
func (r *Remediator) Rebooted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.rebooted...)
}

// Stopped are the attempts of the objects that timed out while it was at work.
func (r *Remediator) Stopped() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.stopped...)
}

// settle goes on by one step.
func (r *Remediator) settle(ctx context.Context, one *unstructured.Unstructured) error {
	patch := func(text string, of ...string) error {
		_, err := r.api.Namespace(one.GetNamespace()).Patch(ctx, one.GetName(), types.MergePatchType, []byte(text), metav1.PatchOptions{}, of...)
		return err
	}
	says := func(processing, succeeded string) error {
		condition := func(kind, status string) string {
			return fmt.Sprintf(`{"type":%q,"status":%q,"reason":"Lab","message":"","lastTransitionTime":%q}`, kind, status, time.Now().UTC().Format(time.RFC3339))
		}
		return patch(`{"status":{"conditions":[`+condition("Processing", processing)+`,`+condition("Succeeded", succeeded)+`]}}`, "status")
	}
	status := func(kind string) string {
		all, _, _ := unstructured.NestedSlice(one.Object, "status", "conditions")
		for _, c := range all {
			if c, ok := c.(map[string]any); ok && c["type"] == kind {
				return fmt.Sprint(c["status"])
			}
		}
		return ""
	}
	node, attempt := one.GetAnnotations()["remediation.medik8s.io/node-name"], one.GetAnnotations()["drydock.dev/attempt"]
	note := func(in *[]string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		*in = append(*in, attempt)
	}
	_, timedOut := one.GetAnnotations()["remediation.medik8s.io/nhc-timed-out"]
	if timedOut && !r.done[one.GetUID()] {
		note(&r.stopped)
		r.done[one.GetUID()] = true
	}
	switch {
	case one.GetDeletionTimestamp() != nil:
		if len(one.GetFinalizers()) == 0 {
			return nil
		}
		return patch(`{"metadata":{"finalizers":null}}`)
	case len(one.GetFinalizers()) == 0:
		return patch(fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, selfNodeFinalizer))
	case status("Processing") == "":
		return says("True", "Unknown")
	case status("Processing") == "False":
		return nil
	case timedOut:
		return says("False", "False")
	case slices.Contains(r.idle, node):
		return nil
	}
	if !r.done[one.GetUID()] {
		r.lab.Off(node)
		if err := r.lab.On(ctx, node, uuid.NewString(), true); err != nil {
			return err
		}
		note(&r.rebooted)
		r.done[one.GetUID()] = true
	}
	return says("False", "True")
}
