package kit

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// List lists objects of another system in the first of the versions that the API server serves. If
// it serves none, the list is empty. An empty namespace means all namespaces.
func List(ctx context.Context, objects dynamic.Interface, namespace, group, resource string, versions ...string) ([]unstructured.Unstructured, error) {
	for _, v := range versions {
		list, err := objects.Resource(schema.GroupVersionResource{Group: group, Version: v, Resource: resource}).Namespace(namespace).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("listing %s.%s: %w", resource, group, err)
		}
		return list.Items, nil
	}
	return nil, nil
}

// Selector reads the label selector at the path fields. A missing or empty selector selects
// everything.
func Selector(o unstructured.Unstructured, fields ...string) (labels.Selector, error) {
	raw, _, err := unstructured.NestedMap(o.Object, fields...)
	if err != nil {
		return nil, err
	}
	var s metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&s)
}
