package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// MachineSetLabel is the label of Nodes with the name of their MachineSet.
const MachineSetLabel = "machine.openshift.io/cluster-api-machineset"

// MachineAPIUser is the ServiceAccount that the Machine API uses to change Nodes.
const MachineAPIUser = "system:serviceaccount:openshift-machine-api:machine-api-controllers"

const (
	openShiftMachines = "openshift-machine-api"
	// The Node's annotation with the name of its Machine.
	nodesMachine = "machine.openshift.io/machine"
	// On a Machine until its Node is deleted.
	machineFinalizer = "machine.machine.openshift.io"
)

// MachineDeletions is the resource of the objects that request a repair from
// MachineDeletionRemediation.
var MachineDeletions = Remediations["MachineDeletionRemediation"].WithResource("machinedeletionremediations")

// MachineAPI simulates OpenShift's Machine API and the remediator MachineDeletionRemediation,
// according to their contracts. The remediator adds a finalizer to an object, deletes the Machine
// that the Node's annotation names, and sets Succeeded=True. The Machine API deletes the Node of a
// deleted Machine, and replaces missing Machines of a MachineSet. Neither of the two drains nodes.
type MachineAPI struct {
	Dynamic dynamic.Interface

	lab *Lab
	// With the Machine API's identity.
	nodes typed.NodeInterface
}

// StartMachineAPI adds the kinds and starts both simulations, without a MachineSet.
func (l *Lab) StartMachineAPI(ctx context.Context) (*MachineAPI, error) {
	if err := l.AddRemediatorKinds(ctx); err != nil {
		return nil, err
	}
	if err := l.AddOpenShiftMachineKinds(ctx); err != nil {
		return nil, err
	}
	config := l.AdminConfig()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{} // the API server would warn about the name of the Machine API's own finalizer
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if config, err = l.userConfig(MachineAPIUser, "system:masters", "system:serviceaccounts", "system:serviceaccounts:openshift-machine-api"); err != nil {
		return nil, err
	}
	own, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	a := &MachineAPI{Dynamic: client, lab: l, nodes: own.CoreV1().Nodes()}
	running, cancel := context.WithCancel(context.Background())
	l.mu.Lock()
	l.ends = append(l.ends, cancel)
	l.mu.Unlock()
	go wait.UntilWithContext(running, func(ctx context.Context) {
		if err := a.step(ctx); err != nil && ctx.Err() == nil {
			l.say("Machine API: %v", err) // the next step tries again
		}
	}, 200*time.Millisecond)
	return a, nil
}

// AddMachineSet creates a MachineSet, and returns the names of its Nodes when all exist.
func (a *MachineAPI) AddMachineSet(ctx context.Context, name string, replicas int) (nodes []string, err error) {
	_, err = a.sets().Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": OpenShiftMachineSets.GroupVersion().String(), "kind": "MachineSet", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"replicas": int64(replicas)},
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		all, err := a.machines().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		nodes = nil
		for i := range all.Items {
			if node := nodeRef(&all.Items[i]); node != "" && ownerOf(&all.Items[i]) == name {
				nodes = append(nodes, node)
			}
		}
		return len(nodes) == replicas, nil
	})
	return nodes, err
}

// MachineOf returns the UID of the Node's Machine, or "" if there is none.
func (a *MachineAPI) MachineOf(ctx context.Context, node string) (types.UID, error) {
	all, err := a.machines().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for i := range all.Items {
		if nodeRef(&all.Items[i]) == node {
			return all.Items[i].GetUID(), nil
		}
	}
	return "", nil
}

func (a *MachineAPI) machines() dynamic.ResourceInterface {
	return a.Dynamic.Resource(OpenShiftMachines).Namespace(openShiftMachines)
}

func (a *MachineAPI) sets() dynamic.ResourceInterface {
	return a.Dynamic.Resource(OpenShiftMachineSets).Namespace(openShiftMachines)
}

func nodeRef(machine *unstructured.Unstructured) string {
	node, _, _ := unstructured.NestedString(machine.Object, "status", "nodeRef", "name")
	return node
}

func ownerOf(machine *unstructured.Unstructured) string {
	if of := metav1.GetControllerOf(machine); of != nil {
		return of.Name
	}
	return ""
}

func (a *MachineAPI) step(ctx context.Context) error {
	asked, err := a.Dynamic.Resource(MachineDeletions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range asked.Items {
		if err := a.remedy(ctx, &asked.Items[i]); err != nil {
			return err
		}
	}
	machines, err := a.machines().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	have := map[string]int64{}
	for i := range machines.Items {
		one := &machines.Items[i]
		if one.GetDeletionTimestamp() == nil {
			have[ownerOf(one)]++
			err = a.bringUp(ctx, one)
		} else {
			err = a.takeDown(ctx, one)
		}
		if err != nil {
			return err
		}
	}
	sets, err := a.sets().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range sets.Items {
		if err := a.fill(ctx, &sets.Items[i], have[sets.Items[i].GetName()]); err != nil {
			return err
		}
	}
	return nil
}

func (a *MachineAPI) remedy(ctx context.Context, one *unstructured.Unstructured) error {
	objects := a.Dynamic.Resource(MachineDeletions).Namespace(one.GetNamespace())
	conditions, _, _ := unstructured.NestedSlice(one.Object, "status", "conditions")
	switch {
	case one.GetDeletionTimestamp() != nil:
		return a.patch(ctx, objects, one, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	case len(one.GetFinalizers()) == 0:
		return a.patch(ctx, objects, one, map[string]any{"metadata": map[string]any{"finalizers": []any{MachineDeletions.Group + "/finalizer"}}})
	case len(conditions) > 0:
		return nil
	}
	node, err := a.nodes.Get(ctx, one.GetName(), metav1.GetOptions{})
	if err != nil {
		return ignoreGone(err)
	}
	if err := a.machines().Delete(ctx, strings.TrimPrefix(node.Annotations[nodesMachine], openShiftMachines+"/"), metav1.DeleteOptions{}); ignoreGone(err) != nil {
		return err
	}
	said := func(kind, status string) any {
		return map[string]any{"type": kind, "status": status, "reason": "Lab", "message": "", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
	}
	return a.patch(ctx, objects, one, map[string]any{"status": map[string]any{"conditions": []any{said("Processing", "False"), said("Succeeded", "True")}}}, "status")
}

func (a *MachineAPI) takeDown(ctx context.Context, machine *unstructured.Unstructured) error {
	if node := nodeRef(machine); node != "" {
		a.lab.Break(node)
		if err := a.nodes.Delete(ctx, node, metav1.DeleteOptions{}); ignoreGone(err) != nil {
			return err
		}
	}
	return a.patch(ctx, a.machines(), machine, map[string]any{"metadata": map[string]any{"finalizers": nil}})
}

func (a *MachineAPI) bringUp(ctx context.Context, machine *unstructured.Unstructured) error {
	if nodeRef(machine) != "" {
		return nil
	}
	name := "node-of-" + machine.GetName()
	id, _, _ := unstructured.NestedString(machine.Object, "spec", "providerID")
	err := a.lab.AddNode(ctx, NodeSpec{Name: name, ProviderID: id, Labels: map[string]string{MachineSetLabel: ownerOf(machine)}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	annotate := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, nodesMachine, openShiftMachines+"/"+machine.GetName())
	if _, err := a.nodes.Patch(ctx, name, types.MergePatchType, annotate, metav1.PatchOptions{}); err != nil {
		return err
	}
	return a.patch(ctx, a.machines(), machine, map[string]any{"status": map[string]any{"phase": "Running", "nodeRef": map[string]any{"name": name}}}, "status")
}

func (a *MachineAPI) fill(ctx context.Context, set *unstructured.Unstructured, have int64) error {
	wanted, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	for ; have < wanted; have++ {
		yes := true
		one := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": OpenShiftMachines.GroupVersion().String(), "kind": "Machine", "spec": map[string]any{"providerID": "aws:///lab/i-" + uuid.NewString()},
		}}
		one.SetName(set.GetName() + "-" + rand.String(5))
		one.SetFinalizers([]string{machineFinalizer})
		one.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: set.GetAPIVersion(), Kind: "MachineSet", Name: set.GetName(), UID: set.GetUID(), Controller: &yes}})
		if _, err := a.machines().Create(ctx, one, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if said, _, _ := unstructured.NestedInt64(set.Object, "status", "replicas"); said == have {
		return nil
	}
	return a.patch(ctx, a.sets(), set, map[string]any{"status": map[string]any{"replicas": have}}, "status")
}

func (a *MachineAPI) patch(ctx context.Context, objects dynamic.ResourceInterface, one *unstructured.Unstructured, change map[string]any, of ...string) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = objects.Patch(ctx, one.GetName(), types.MergePatchType, data, metav1.PatchOptions{}, of...)
	return ignoreGone(err)
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
