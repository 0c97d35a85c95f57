package install

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"drydock.dev/drydock/internal/lab"
)

// belonging returns the objects of every kind that have the release's label, and Helm's own record
// of the release.
func belonging(t *testing.T, l *lab.Lab, release string) map[string]func() error {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	client, err := dynamic.NewForConfig(l.AdminConfig())
	require.NoError(t, err)
	lists, err := l.Client().Discovery().ServerPreferredResources()
	require.NoError(t, err)
	out := map[string]func() error{}
	records := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets"))
	found, err := records.List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,name=" + release})
	require.NoError(t, err)
	for _, o := range found.Items {
		out["Secret "+o.GetNamespace()+"/"+o.GetName()] = remove(ctx, records, o)
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, r := range list.APIResources {
			resource := client.Resource(version.WithResource(r.Name))
			found, err := resource.List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + release})
			require.NoError(t, err, r.Name)
			for _, o := range found.Items {
				out[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = remove(ctx, resource, o)
			}
		}
	}
	return out
}

func remove(ctx context.Context, resource dynamic.NamespaceableResourceInterface, o unstructured.Unstructured) func() error {
	return func() error {
		var at dynamic.ResourceInterface = resource
		if o.GetNamespace() != "" {
			at = resource.Namespace(o.GetNamespace())
		}
		return at.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
	}
}

// sweep deletes these objects.
func sweep(t *testing.T, l *lab.Lab, release string) {
	t.Helper()
	for name, remove := range belonging(t, l, release) {
		if err := remove(); !apierrors.IsNotFound(err) {
			require.NoError(t, err, name)
		}
	}
}
