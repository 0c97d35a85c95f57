// Package space makes namespaces for tests in a lab that has only an API server.
package space

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lab"
)

// Space is a namespace whose objects a test makes by hand. No controller acts on them. The test
// that uses a space sets T.
type Space struct {
	T    testing.TB
	Name string

	client    dynamic.Interface
	resources map[string]schema.GroupVersionResource
}

var spaces atomic.Int64

// Make makes namespaces in the shared lab, concurrently, and calls fill for each. resources are the
// kinds of objects that they use.
func Make[W any](t testing.TB, prefix string, many int, resources map[string]schema.GroupVersionResource, fill func(*Space) W) chan W {
	t.Helper()
	l := lab.Shared(t)
	config := l.AdminConfig()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	made := make(chan W, many)
	var g errgroup.Group
	g.SetLimit(8)
	for range many {
		g.Go(func() error {
			s := &Space{t, fmt.Sprintf("%s-%d", prefix, spaces.Add(1)), client, resources}
			_, err := l.Client().CoreV1().Namespaces().Create(s.ctx(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Name}}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			made <- fill(s)
			return nil
		})
	}
	require.NoError(t, g.Wait())
	return made
}

// In returns a Space for another namespace that already exists, with kinds of its own.
func (s *Space) In(namespace string, resources map[string]schema.GroupVersionResource) *Space {
	return &Space{s.T, namespace, s.client, resources}
}

func (s *Space) ctx() context.Context { return context.WithoutCancel(s.T.Context()) }

// Of returns a client for the namespace's objects of that kind.
func (s *Space) Of(kind string) dynamic.ResourceInterface {
	return s.client.Resource(s.resources[kind]).Namespace(s.Name)
}

// Create makes an object. meta is added to its metadata. A nil status is not set.
func (s *Space) Create(kind, name string, meta, spec, status map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"name": name, "namespace": s.Name}
	maps.Copy(metadata, meta)
	data, err := json.Marshal(map[string]any{"apiVersion": s.resources[kind].GroupVersion().String(), "kind": kind, "metadata": metadata, "spec": spec})
	require.NoError(s.T, err)
	o := &unstructured.Unstructured{}
	require.NoError(s.T, o.UnmarshalJSON(data))
	made, err := s.Of(kind).Create(s.ctx(), o, metav1.CreateOptions{})
	require.NoError(s.T, err)
	if status != nil {
		s.Patch(kind, name, map[string]any{"status": status}, "status")
	}
	return made
}

// Patch merges the change into the object, or into its subresource.
func (s *Space) Patch(kind, name string, change map[string]any, of ...string) {
	data, err := json.Marshal(change)
	require.NoError(s.T, err)
	_, err = s.Of(kind).Patch(s.ctx(), name, types.MergePatchType, data, metav1.PatchOptions{}, of...)
	require.NoError(s.T, err)
}

// Get returns the object, or nil if there is none.
func (s *Space) Get(kind, name string) *unstructured.Unstructured {
	o, err := s.Of(kind).Get(s.ctx(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(s.T, err)
	return o
}

// List returns all objects of the kind, or those with the labels.
func (s *Space) List(kind, labels string) []unstructured.Unstructured {
	all, err := s.Of(kind).List(s.ctx(), metav1.ListOptions{LabelSelector: labels})
	require.NoError(s.T, err)
	return all.Items
}

// Delete deletes an object, even if it has finalizers.
func (s *Space) Delete(kind, name string) {
	s.Patch(kind, name, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if o := s.Get(kind, name); o != nil && o.GetDeletionTimestamp() == nil {
		require.NoError(s.T, s.Of(kind).Delete(s.ctx(), name, metav1.DeleteOptions{}))
	}
}

// Node makes a Node. annotations may be nil.
func (s *Space) Node(name, providerID string, annotations map[string]string) *corev1.Node {
	n, err := s.nodes().Create(s.ctx(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Spec: corev1.NodeSpec{ProviderID: providerID},
	}, metav1.CreateOptions{})
	require.NoError(s.T, err)
	return n
}

// PatchNode merges the change into a Node.
func (s *Space) PatchNode(name string, change map[string]any) *corev1.Node {
	data, err := json.Marshal(change)
	require.NoError(s.T, err)
	n, err := s.nodes().Patch(s.ctx(), name, types.MergePatchType, data, metav1.PatchOptions{})
	require.NoError(s.T, err)
	return n
}

// DropNode deletes a Node.
func (s *Space) DropNode(name string) {
	require.NoError(s.T, s.nodes().Delete(s.ctx(), name, metav1.DeleteOptions{}))
}

func (s *Space) nodes() typed.NodeInterface { return lab.Shared(s.T).Client().CoreV1().Nodes() }
