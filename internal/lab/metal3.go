package lab

import (
	"context"
	"fmt"
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
)

// BareMetalHosts are Metal3's machines.
var BareMetalHosts = schema.GroupVersionResource{Group: "metal3.io", Version: "v1alpha1", Resource: "baremetalhosts"}

// AddMetal3Kinds applies a kind of the name of Metal3's, which holds anything, and Cluster API's. Nobody acts on them.
func (l *Lab) AddMetal3Kinds(ctx context.Context) error {
	if err := l.addLabKinds(ctx, BareMetalHosts.GroupVersion(), "BareMetalHost"); err != nil {
		return err
	}
	return l.AddClusterAPIKinds(ctx)
}

// BareMetalHost is a host that is provisioned for a Metal3Machine, and is on.
func BareMetalHost(namespace, consumer string) (spec, status map[string]any) {
	return map[string]any{"online": true, "consumerRef": map[string]any{"kind": metal3Machine, "name": consumer, "namespace": namespace}},
		map[string]any{"poweredOn": true, "provisioning": map[string]any{"state": "provisioned"}}
}

// BareMetalMachine is the Machine behind a Node, whose Metal3Machine is consumer.
func BareMetalMachine(node, providerID, consumer string) (spec, status map[string]any) {
	return map[string]any{
		"clusterName": "prod", "bootstrap": map[string]any{"dataSecretName": "none"}, "version": "v1.37.2", "providerID": providerID,
		"infrastructureRef": map[string]any{"apiGroup": infraGroup, "kind": metal3Machine, "name": consumer},
	}, map[string]any{"nodeRef": map[string]any{"name": node}}
}

const metal3Machine = "Metal3Machine"

// AddBareMetal makes the host host-NAME in the namespace and its Machine machine-NAME. Their Node is to have the provider ID.
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

// StartBareMetalOperator plays the baremetal-operator by its contract, where the kind is there: a host with the annotation
// reboot.metal3.io is switched off, loses the annotation, and is switched on again. nodes has the Node behind each host. It ends with
// the context. rebooted are the Nodes whose machines it has rebooted.
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
		// Who wrote the host since it was seen here is answered when that is seen.
		take := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{"reboot.metal3.io":null}}}`, one.GetResourceVersion())
		_, err := hosts.Namespace(one.GetNamespace()).Patch(ctx, one.GetName(), types.MergePatchType, []byte(take), metav1.PatchOptions{})
		if err != nil {
			if ctx.Err() == nil && !apierrors.IsConflict(err) {
				l.say("BareMetalHost %s: %v", one.GetName(), err)
			}
			return
		}
		node := nodes[one.GetName()]
		l.Off(node)
		if err := l.On(ctx, node, uuid.NewString(), true); err != nil {
			l.say("BareMetalHost %s: %v", one.GetName(), err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		done = append(done, node)
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, time.Second) // what fails is tried again
	_, err = factory.ForResource(BareMetalHosts).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: settle, UpdateFunc: func(_, o any) { settle(o) },
	})
	factory.Start(ctx.Done())
	return func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(done) }, err
}
