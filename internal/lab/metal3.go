package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/internal/lab/programs"
)

// BareMetalHosts is the resource of Metal3's machines.
var BareMetalHosts = schema.GroupVersionResource{Group: "metal3.io", Version: "v1alpha1", Resource: "baremetalhosts"}

// AddMetal3Kinds applies Metal3's kind BareMetalHost and Cluster API's kinds, without their
// controllers.
func (l *Lab) AddMetal3Kinds(ctx context.Context) error {
	text, err := bareMetalHostKind(ctx)
	if err == nil {
		err = l.addKind(ctx, text)
	}
	if err != nil {
		return fmt.Errorf("adding the kind BareMetalHost: %w", err)
	}
	return l.AddClusterAPIKinds(ctx)
}

// Module proxies do not have the module with the definition, but only the one with the operator's
// Go types. So controller-gen makes the definition from the types, as in the operator's Makefile.
func bareMetalHostKind(ctx context.Context) ([]byte, error) {
	paths, err := programs.Build(ctx, os.Stderr, "controller-gen")
	if err != nil {
		return nil, err
	}
	root, err := programs.ModuleRoot()
	if err != nil {
		return nil, err
	}
	var problems bytes.Buffer
	cmd := exec.CommandContext(ctx, paths["controller-gen"], "crd:allowDangerousTypes=true", "paths=github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1", "output:crd:stdout")
	cmd.Dir, cmd.Stderr = filepath.Join(root, "tools", "metal3"), &problems
	cmd.Env = programs.GoEnv("-mod=readonly")
	all, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("making it of its Go types: %w: %s", err, problems.String())
	}
	for one := range bytes.SplitSeq(all, []byte("\n---\n")) {
		if bytes.Contains(one, []byte("\n  name: baremetalhosts.metal3.io\n")) {
			return one, nil
		}
	}
	return nil, errors.New("it is not among what was made of its Go types")
}

// BareMetalHost returns the spec and status of a running host of the Metal3Machine named consumer.
func BareMetalHost(namespace, consumer string) (spec, status map[string]any) {
	return map[string]any{"online": true, "consumerRef": map[string]any{"kind": metal3Machine, "name": consumer, "namespace": namespace}},
		map[string]any{
			"operationalStatus": "OK", "errorMessage": "", "errorCount": int64(0), "poweredOn": true,
			"provisioning": map[string]any{"state": "provisioned", "ID": "d4e2c7a0-0000-4000-8000-000000000001", "image": map[string]any{"url": ""}},
		}
}

// BareMetalMachine returns the spec and status of a Node's Machine, whose infrastructure is the
// Metal3Machine named consumer.
func BareMetalMachine(node, providerID, consumer string) (spec, status map[string]any) {
	return map[string]any{
		"clusterName": "prod", "bootstrap": map[string]any{"dataSecretName": "none"}, "version": "v1.37.2", "providerID": providerID,
		"infrastructureRef": map[string]any{"apiGroup": infraGroup, "kind": metal3Machine, "name": consumer},
	}, map[string]any{"nodeRef": map[string]any{"name": node}}
}

const metal3Machine = "Metal3Machine"

// AddBareMetal creates the host host-NAME and its Machine machine-NAME. Their Node must have the
// returned provider ID.
func (l *Lab) AddBareMetal(ctx context.Context, namespace, name, node string) (providerID string, err error) {
	config := l.AdminConfig()
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return "", err
	}
	consumer := "m3m-" + name
	providerID = "metal3://" + namespace + "/host-" + name + "/" + consumer
	add := func(of schema.GroupVersionResource, kind, name string, spec, status map[string]any) {
		if err != nil {
			return
		}
		objects := client.Resource(of).Namespace(namespace)
		var made *unstructured.Unstructured
		made, err = objects.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": of.GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
		}}, metav1.CreateOptions{})
		if err == nil {
			made.Object["status"] = status
			_, err = objects.UpdateStatus(ctx, made, metav1.UpdateOptions{})
		}
	}
	spec, status := BareMetalHost(namespace, consumer)
	add(BareMetalHosts, "BareMetalHost", "host-"+name, spec, status)
	spec, status = BareMetalMachine(node, providerID, consumer)
	add(CAPIMachines, "Machine", "machine-"+name, spec, status)
	return providerID, err
}

// StartBareMetalOperator simulates the baremetal-operator, if its kind exists, until the context
// ends. A host with the annotation reboot.metal3.io is switched off, loses the annotation, and is
// switched on again. nodes has the Node of each host. rebooted returns the names of the rebooted
// Nodes.
func (l *Lab) StartBareMetalOperator(ctx context.Context, nodes map[string]string) (rebooted func() []string, err error) {
	client, err := dynamic.NewForConfig(l.AdminConfig())
	if err != nil {
		return nil, err
	}
	hosts := client.Resource(BareMetalHosts)
	var mu sync.Mutex
	var done []string
	settle := func(o any) {
		one, ok := o.(*unstructured.Unstructured)
		if !ok || one.GetAnnotations()["reboot.metal3.io"] == "" {
			return
		}
		node, its := nodes[one.GetName()]
		if !its {
			return
		}
		// If the host has changed since this event, the patch fails, and the next event handles the
		// host.
		take := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{"reboot.metal3.io":null}}}`, one.GetResourceVersion())
		_, err := hosts.Namespace(one.GetNamespace()).Patch(ctx, one.GetName(), types.MergePatchType, []byte(take), metav1.PatchOptions{})
		if err != nil {
			if ctx.Err() == nil && !apierrors.IsConflict(err) {
				l.say("BareMetalHost %s: %v", one.GetName(), err)
			}
			return
		}
		l.Off(node)
		if err := l.On(ctx, node, uuid.NewString(), true); err != nil {
			l.say("BareMetalHost %s: %v", one.GetName(), err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		done = append(done, node)
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, time.Second) // after an error, the next resync tries again
	_, err = factory.ForResource(BareMetalHosts).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: settle, UpdateFunc: func(_, o any) { settle(o) },
	})
	factory.Start(ctx.Done())
	return func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(done) }, err
}

// On a Metal3Remediation from its controller's first look until the controller is done.
const metal3Finalizer = "metal3remediation." + infraGroup

// StartMetal3Remediator simulates the controller of Metal3Remediation, according to its
// documentation, until the context ends. It power-cycles the machine of the Machine that owns the
// object, and removes its finalizer from a deleted object. It never reboots the Nodes named in
// idle. rebooted returns the attempts of the objects whose Nodes were rebooted.
func (l *Lab) StartMetal3Remediator(ctx context.Context, namespace string, idle ...string) (rebooted func() []string, err error) {
	client, err := dynamic.NewForConfig(l.AdminConfig())
	if err != nil {
		return nil, err
	}
	resource := Remediations["Metal3Remediation"].WithResource("metal3remediations")
	objects, machines := client.Resource(resource).Namespace(namespace), client.Resource(CAPIMachines).Namespace(namespace)
	var mu sync.Mutex
	var done []string
	settle := func(one *unstructured.Unstructured) error {
		patch := func(text string, of ...string) error {
			_, err := objects.Patch(ctx, one.GetName(), types.MergePatchType, []byte(text), metav1.PatchOptions{}, of...)
			return err
		}
		phase, _, _ := unstructured.NestedString(one.Object, "status", "phase")
		switch {
		case one.GetDeletionTimestamp() != nil && len(one.GetFinalizers()) == 0, one.GetDeletionTimestamp() == nil && phase == "Waiting":
			return nil
		case one.GetDeletionTimestamp() != nil:
			return patch(`{"metadata":{"finalizers":null}}`)
		case len(one.GetFinalizers()) == 0:
			return patch(fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, metal3Finalizer))
		case phase == "":
			return patch(`{"status":{"phase":"Running"}}`, "status")
		}
		attempt := one.GetAnnotations()["drydock.dev/attempt"]
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(done, attempt) {
			node, err := ownersNode(ctx, machines, one)
			if err != nil || slices.Contains(idle, node) {
				return err
			}
			l.Off(node)
			if err := l.On(ctx, node, uuid.NewString(), true); err != nil {
				return err
			}
			done = append(done, attempt)
		}
		return patch(fmt.Sprintf(`{"status":{"phase":"Waiting","retryCount":1,"lastRemediated":%q}}`, time.Now().UTC().Format(time.RFC3339)), "status")
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, time.Second, namespace, nil) // after an error, the next resync tries again
	handle := func(o any) {
		if one, ok := o.(*unstructured.Unstructured); ok {
			if err := settle(one); err != nil && ctx.Err() == nil {
				l.say("Metal3Remediation %s: %v", one.GetName(), err)
			}
		}
	}
	_, err = factory.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: handle, UpdateFunc: func(_, o any) { handle(o) },
	})
	factory.Start(ctx.Done())
	return func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(done) }, err
}

func ownersNode(ctx context.Context, machines dynamic.ResourceInterface, one *unstructured.Unstructured) (string, error) {
	for _, of := range one.GetOwnerReferences() {
		if of.Kind != "Machine" {
			continue
		}
		machine, err := machines.Get(ctx, of.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		node, _, _ := unstructured.NestedString(machine.Object, "status", "nodeRef", "name")
		if machine.GetUID() != of.UID || node == "" {
			return "", fmt.Errorf("the Machine %s is another one, or has no Node", of.Name)
		}
		return node, nil
	}
	return "", errors.New("no Machine owns it")
}
