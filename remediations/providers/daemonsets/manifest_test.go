package daemonsets

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations/providers/kit"
)

var calico = types.NamespacedName{Namespace: "kube-system", Name: "calico-node"}

const calicoNode = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: calico-node, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: calico-node}}
  template:
    metadata: {labels: {k8s-app: calico-node}}
    spec: {containers: [{name: calico-node, image: "registry.example.com/calico/node:v3.25.0"}]}
`

func TestAManifestIsAppliedInTheOrderOfItsNeeds(t *testing.T) {
	m, err := readManifest([]byte(calicoNode+`---
# nothing here
---
apiVersion: v1
kind: ConfigMap
metadata: {name: calico-config, namespace: kube-system, uid: x, resourceVersion: "7", creationTimestamp: null}
data: {a: b}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: calico-node}
rules: []
---
{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"calico-node","namespace":"kube-system"}}
`), calico)
	require.NoError(t, err)
	var order []string
	for _, o := range m.objects {
		order = append(order, o.String())
	}
	require.Equal(t, []string{"ClusterRole calico-node", "ServiceAccount kube-system/calico-node", "ConfigMap kube-system/calico-config", "DaemonSet kube-system/calico-node"}, order)
	require.Equal(t, map[string]any{"name": "calico-config", "namespace": "kube-system"}, m.objects[2].Object["metadata"], "what the API server keeps is not the manifest's to say")
	require.Len(t, m.applied(), 3, "no rights are given")
	require.Equal(t, "registry.example.com/calico/node:v3.25.0", m.daemonSet.Spec.Template.Spec.Containers[0].Image)
}

func TestAManifestMayHoldNoMoreThanItMust(t *testing.T) {
	object := func(text string) string { return calicoNode + "---\n" + text + "\n" }
	for text, why := range map[string]string{
		"": "the manifest has no DaemonSet kube-system/calico-node",
		strings.ReplaceAll(calicoNode, "calico-node", "other"): "the manifest has no DaemonSet kube-system/calico-node",
		calicoNode + "---" + calicoNode:                        "the manifest has DaemonSet kube-system/calico-node twice",
		object("{"):                                            "document 2 of the manifest: the document is not YAML",
		object("[]"):                                           "document 2 of the manifest: the document is not a Kubernetes object",
		object("a: b"):                                         "document 2 of the manifest: the document is not a Kubernetes object",
		object("{apiVersion: v1, kind: Pod, metadata: {name: a}}"):                      "no object of this kind is applied: /v1, Kind=Pod",
		object("{apiVersion: v1, kind: Secret, metadata: {name: a}}"):                   "no object of this kind is applied: /v1, Kind=Secret",
		object("{apiVersion: v1, kind: List, items: []}"):                               "no object of this kind is applied: /v1, Kind=List",
		object("{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: a}}"):     "no object of this kind is applied: apps/v1beta1, Kind=Deployment",
		object("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system}}"): "a ConfigMap has no name",
		object("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"):                "ConfigMap a is not in the DaemonSet's namespace kube-system",
		object("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}"):  "ConfigMap b/a is not in the DaemonSet's namespace kube-system",
		object("{apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: b}}"):  "Namespace b/a has a namespace, but its kind has none",
		object("a: b\na: c"):                     "the document is not YAML",
		"x: " + strings.Repeat("x", maxManifest): "the manifest is larger than 1048576 bytes",
	} {
		_, err := readManifest([]byte(text), calico)
		require.ErrorContains(t, err, why, "%.80s", text)
		require.ErrorAs(t, err, new(*kit.Refusal))
	}
	var many strings.Builder
	many.WriteString(calicoNode)
	for i := range maxObjects {
		fmt.Fprintf(&many, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, namespace: kube-system}}\n", i)
	}
	_, err := readManifest([]byte(many.String()), calico)
	require.ErrorContains(t, err, "the manifest has more than 64 objects")
}

func versioned(label string, images ...string) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cni"}}
	if label != "" {
		ds.Labels = map[string]string{versionLabel: label}
	}
	for i, image := range images {
		ds.Spec.Template.Spec.Containers = append(ds.Spec.Template.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: image})
	}
	return ds
}

// Never a downgrade; versions that cannot be compared may hide one.
func TestNothingIsEverMadeOlder(t *testing.T) {
	for name, tc := range map[string]struct {
		installed, wanted *appsv1.DaemonSet
		why               string
	}{
		"the same":                          {versioned("", "a:v3.25.0"), versioned("", "a:v3.25.0"), ""},
		"newer":                             {versioned("", "a:v3.25.0"), versioned("", "a:v3.25.10"), ""},
		"newer, though its text is less":    {versioned("", "a:v3.9.0"), versioned("", "a:v3.10.0"), ""},
		"of another registry":               {versioned("", "one.example.com:5000/a:v3.25.0"), versioned("", "two.example.com:5000/b/a:v3.25.0@sha256:00"), ""},
		"of two numbers":                    {versioned("", "a:1.9"), versioned("", "a:1.10"), ""},
		"by the label alone":                {versioned("3.25.0", "a@sha256:00"), versioned("3.25.1", "a@sha256:00"), ""},
		"with a container more":             {versioned("", "a:v3.25.0"), versioned("", "a:v3.25.0", "b:latest"), ""},
		"a release after its candidate":     {versioned("", "a:v3.25.0-rc1"), versioned("", "a:v3.25.0"), ""},
		"older":                             {versioned("", "a:v3.25.1"), versioned("", "a:v3.25.0"), "container c0 has version 3.25.1 in the cluster and 3.25.0 in the manifest"},
		"older, though its text is more":    {versioned("", "a:v3.10.0"), versioned("", "a:v3.9.0"), "Drydock never installs an older version"},
		"a candidate after its release":     {versioned("", "a:v3.25.0"), versioned("", "a:v3.25.0-rc1"), "Drydock never installs an older version"},
		"older under a newer label":         {versioned("3.25.0", "a:v3.25.0"), versioned("3.26.0", "a:v3.24.0"), "container c0 has version 3.25.0 in the cluster and 3.24.0"},
		"an older label":                    {versioned("3.25.0", "a:v3.25.0"), versioned("3.24.0", "a:v3.25.0"), "the label app.kubernetes.io/version has version 3.25.0 in the cluster and 3.24.0"},
		"one of two containers older":       {versioned("", "a:v3.25.0", "b:v2.0.0"), versioned("", "a:v3.26.0", "b:v1.9.9"), "container c1 has version 2.0.0"},
		"latest":                            {versioned("", "a:v3.25.0"), versioned("", "a:latest"), "Drydock cannot compare the version of container c0: it is 3.25.0 in the cluster and unknown in the manifest"},
		"no tag":                            {versioned("", "example.com:5000/a"), versioned("", "a:v3.25.0"), "it is unknown in the cluster and 3.25.0"},
		"one digest and another":            {versioned("3.25.0", "a@sha256:00"), versioned("3.25.0", "a@sha256:11"), "Drydock cannot compare the version of container c0"},
		"the same digest, and nothing else": {versioned("", "a@sha256:00"), versioned("", "a@sha256:00"), "has no version that is in the cluster and in the manifest"},
		"other containers":                  {versioned("", "a:v3.25.0"), versioned(""), "has no version"},
		"a label on one side":               {versioned("3.25.0"), versioned(""), "has no version"},
	} {
		said, err := neverOlder(tc.installed, tc.wanted)
		if tc.why == "" {
			require.NoError(t, err, name)
			require.Contains(t, said, "in the cluster", name)
			continue
		}
		require.ErrorContains(t, err, tc.why, name)
		require.ErrorAs(t, err, new(*kit.Refusal), name)
	}
}

func TestALiveObjectMayHaveMoreThanTheManifestSays(t *testing.T) {
	type m = map[string]any
	for name, tc := range map[string]struct {
		want, live any
		at         string
	}{
		"the same":              {m{"a": int64(1)}, m{"a": int64(1)}, ""},
		"defaults":              {m{"a": m{"b": "c"}}, m{"a": m{"b": "c", "d": "e"}, "f": true}, ""},
		"nothing is none":       {m{"a": nil, "b": false, "c": "", "d": m{}, "e": []any{}}, m{}, ""},
		"another value":         {m{"a": m{"b": "c"}}, m{"a": m{"b": "d"}}, ".a.b"},
		"a missing value":       {m{"a": m{"b": "c"}}, m{}, ".a.b"},
		"a longer list":         {m{"a": []any{"x"}}, m{"a": []any{"x", "y"}}, ".a"},
		"another item":          {m{"a": []any{m{"b": "x"}}}, m{"a": []any{m{"b": "y"}}}, ".a[0].b"},
		"text in place of keys": {m{"a": m{"b": "c"}}, m{"a": "b"}, ".a"},
		"keys in place of text": {m{"a": "b"}, m{"a": m{"b": "c"}}, ".a"},
	} {
		require.Equal(t, tc.at, differs("", tc.want, tc.live), name)
	}
}
