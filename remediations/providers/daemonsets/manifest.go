package daemonsets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/remediations/providers/kit"
)

const (
	// maxManifest is in bytes, like the API server's limit for a ConfigMap. Calico's manifest has
	// 300 KB.
	maxManifest = 1 << 20
	// maxObjects also limits the number of calls of one attempt. Calico's manifest has 30 objects.
	maxObjects = 64
)

type kindOf struct {
	schema.GroupVersionKind
	resource   string
	namespaced bool
	// applied means that Drydock writes objects of this kind. The others must already be in the
	// cluster: with the rights to write them, Drydock could give itself any right.
	applied bool
}

// manifestKinds is the order of the apply: first what pods need, then what creates pods. A manifest
// may contain no other kinds.
var manifestKinds = []kindOf{
	{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "customresourcedefinitions", false, false},
	{schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, "clusterroles", false, false},
	{schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}, "clusterrolebindings", false, false},
	{schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, "roles", true, false},
	{schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}, "rolebindings", true, false},
	{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces", false, false},
	{schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}, "priorityclasses", false, false},
	{schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, "serviceaccounts", true, true},
	{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps", true, true},
	{schema.GroupVersionKind{Version: "v1", Kind: "Service"}, "services", true, true},
	{schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, "poddisruptionbudgets", true, true},
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments", true, true},
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}, "daemonsets", true, true},
}

type manifestObject struct {
	*unstructured.Unstructured
	kind kindOf
}

func (o manifestObject) String() string {
	if o.GetNamespace() == "" {
		return o.kind.Kind + " " + o.GetName()
	}
	return o.kind.Kind + " " + o.GetNamespace() + "/" + o.GetName()
}

type manifest struct {
	objects   []manifestObject // in the order of the apply
	daemonSet *appsv1.DaemonSet
}

func readManifest(data []byte, daemonSet types.NamespacedName) (*manifest, error) {
	if len(data) > maxManifest {
		return nil, kit.Refuse(kit.Machine, "the manifest is larger than %d bytes", maxManifest)
	}
	m := &manifest{}
	seen := map[string]bool{}
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data)))
	defer func() { _ = documents.Close() }()
	buffer := make([]byte, maxManifest+1)
	for n := 1; ; n++ {
		size, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, kit.Refuse(kit.Machine, "document %d of the manifest cannot be read: %v", n, err)
		}
		o, err := readObject(buffer[:size], daemonSet.Namespace)
		if err != nil {
			return nil, kit.Refuse(kit.Machine, "document %d of the manifest: %v", n, err)
		}
		switch {
		case o == nil:
			continue
		case seen[o.String()]:
			return nil, kit.Refuse(kit.Machine, "the manifest has %s twice", o)
		case len(m.objects) == maxObjects:
			return nil, kit.Refuse(kit.Machine, "the manifest has more than %d objects", maxObjects)
		}
		seen[o.String()] = true
		m.objects = append(m.objects, *o)
		if o.kind.Kind == "DaemonSet" && o.GetNamespace() == daemonSet.Namespace && o.GetName() == daemonSet.Name {
			m.daemonSet = &appsv1.DaemonSet{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, m.daemonSet); err != nil {
				return nil, kit.Refuse(kit.Machine, "%s of the manifest cannot be read: %v", o, err)
			}
		}
	}
	if m.daemonSet == nil {
		return nil, kit.Refuse(kit.Machine, "the manifest has no DaemonSet %s, so Drydock cannot compare its version with that in the cluster", daemonSet)
	}
	slices.SortStableFunc(m.objects, func(a, b manifestObject) int { return rankOf(a.kind) - rankOf(b.kind) })
	return m, nil
}

func rankOf(k kindOf) int {
	return slices.IndexFunc(manifestKinds, func(o kindOf) bool { return o.GroupVersionKind == k.GroupVersionKind })
}

func readObject(document []byte, namespace string) (*manifestObject, error) {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, fmt.Errorf("the document is not YAML: %w", err)
	}
	if string(bytes.TrimSpace(text)) == "null" {
		return nil, nil
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("the document is not a Kubernetes object: %w", err)
	}
	i := slices.IndexFunc(manifestKinds, func(k kindOf) bool { return k.GroupVersionKind == o.GroupVersionKind() })
	if i < 0 || o.IsList() {
		return nil, fmt.Errorf("no object of this kind is applied: %s; apply the object yourself, and remove it from the manifest", o.GroupVersionKind())
	}
	out := &manifestObject{o, manifestKinds[i]}
	switch {
	case o.GetName() == "" || o.GetGenerateName() != "":
		return nil, fmt.Errorf("a %s has no name", out.kind.Kind)
	case out.kind.namespaced && o.GetNamespace() != namespace:
		return nil, fmt.Errorf("%s is not in the DaemonSet's namespace %s, and Drydock changes nothing in other namespaces", out, namespace)
	case !out.kind.namespaced && o.GetNamespace() != "":
		return nil, fmt.Errorf("%s has a namespace, but its kind has none; remove it", out)
	}
	// The API server sets these fields itself, so the manifest's values are removed.
	for _, path := range [][]string{{"status"}, {"metadata", "managedFields"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "creationTimestamp"}} {
		unstructured.RemoveNestedField(o.Object, path...)
	}
	return out, nil
}
