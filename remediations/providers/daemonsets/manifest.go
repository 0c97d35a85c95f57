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
	// maxManifest bounds a manifest, as the API server bounds a ConfigMap; Calico's has 300 KB.
	maxManifest = 1 << 20
	// maxObjects bounds the objects in it, and with them the calls that one attempt makes. Calico's
	// has 30.
	maxObjects = 64
)

// kindOf holds the resource names for the objects of a kind at the API server.
type kindOf struct {
	schema.GroupVersionKind
	resource   string
	namespaced bool
	// applied objects are written. The others must already be there in the manifest's form: rights
	// to write them would make every other limit of Drydock useless.
	applied bool
}

// manifestKinds are all kinds that a manifest may hold, in the order of the apply: first what pods
// need, then the pods.
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

// manifestObject is one object of a manifest.
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

// manifest is a manifest that may be applied, if the cluster is in the state that this requires.
type manifest struct {
	objects   []manifestObject // in the order of the apply
	daemonSet *appsv1.DaemonSet
}

// readManifest reads a manifest and refuses what may never be applied. Its errors are refusals.
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
		return nil, kit.Refuse(kit.Machine, "the manifest has no DaemonSet %s, so its version cannot be compared with the cluster's", daemonSet)
	}
	slices.SortStableFunc(m.objects, func(a, b manifestObject) int { return rankOf(a.kind) - rankOf(b.kind) })
	return m, nil
}

func rankOf(k kindOf) int {
	return slices.IndexFunc(manifestKinds, func(o kindOf) bool { return o.GroupVersionKind == k.GroupVersionKind })
}

// readObject reads one document; nil: there is nothing in it.
func readObject(document []byte, namespace string) (*manifestObject, error) {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, fmt.Errorf("it is not YAML: %w", err)
	}
	if string(bytes.TrimSpace(text)) == "null" {
		return nil, nil
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("it is not an object: %w", err)
	}
	i := slices.IndexFunc(manifestKinds, func(k kindOf) bool { return k.GroupVersionKind == o.GroupVersionKind() })
	if i < 0 || o.IsList() {
		return nil, fmt.Errorf("%s is not a kind that Drydock applies; apply it yourself, and take it out", o.GroupVersionKind())
	}
	out := &manifestObject{o, manifestKinds[i]}
	switch {
	case o.GetName() == "" || o.GetGenerateName() != "":
		return nil, fmt.Errorf("a %s has no name", out.kind.Kind)
	case out.kind.namespaced && o.GetNamespace() != namespace:
		return nil, fmt.Errorf("%s is not in the namespace %s of the DaemonSet, and nothing elsewhere is touched", out, namespace)
	case !out.kind.namespaced && o.GetNamespace() != "":
		return nil, fmt.Errorf("%s is in a namespace, which there is none for its kind", out)
	}
	// Fields that the API server maintains are not taken from the manifest.
	for _, path := range [][]string{{"status"}, {"metadata", "managedFields"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "creationTimestamp"}} {
		unstructured.RemoveNestedField(o.Object, path...)
	}
	return out, nil
}
