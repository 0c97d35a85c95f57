package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab/programs"
)

const notes = "drydock/templates/NOTES.txt"

// RenderChart renders charts/drydock as `helm template --no-hooks` does, and returns the manifests
// by file name.
func RenderChart(release, namespace string, values map[string]any) (map[string]string, error) {
	rendered, err := render(release, namespace, values)
	maps.DeleteFunc(rendered, func(name, text string) bool {
		return strings.HasPrefix(filepath.Base(name), "_") || strings.Contains(name, "/templates/tests/") || strings.Contains(name, "/templates/hooks/") || name == notes || strings.TrimSpace(text) == ""
	})
	return rendered, err
}

// RenderNotes returns the notes that `helm install` prints at its end.
func RenderNotes(release, namespace string, values map[string]any) (string, error) {
	rendered, err := render(release, namespace, values)
	return rendered[notes], err
}

func render(release, namespace string, values map[string]any) (map[string]string, error) {
	root, err := programs.ModuleRoot()
	if err != nil {
		return nil, fmt.Errorf("finding the chart: %w", err)
	}
	chart, err := loader.LoadDir(filepath.Join(root, "charts", "drydock"))
	if err != nil {
		return nil, fmt.Errorf("loading the chart: %w", err)
	}
	// The values go through YAML, because Helm's schema check accepts only the Go types that a file
	// gives.
	text, err := yaml.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("writing the chart's values: %w", err)
	}
	read, err := common.ReadValues(text)
	if err != nil {
		return nil, fmt.Errorf("reading the chart's values: %w", err)
	}
	all, err := util.ToRenderValues(chart, read, common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the chart's values: %w", err)
	}
	rendered, err := engine.Render(chart, all)
	if err != nil {
		return nil, fmt.Errorf("rendering the chart: %w", err)
	}
	return rendered, nil
}

// RenderedConfig returns Drydock's configuration from RenderChart's output.
func RenderedConfig(manifests map[string]string) ([]byte, error) {
	var o corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(manifests["drydock/templates/configmap.yaml"]), &o); err != nil {
		return nil, fmt.Errorf("reading the chart's ConfigMap: %w", err)
	}
	return []byte(o.Data["drydock.yaml"]), nil
}

// Drydock runs as a process beside the cluster, so the release has no pods. Without a provider in
// the values the release gets Civo, because an enforcing Drydock needs a provider to drain.
// Otherwise it has only the rights for the providers in the values.
func labValues(namespace string, values map[string]any) map[string]any {
	configured := map[string]any{"leaderElection": map[string]any{"cluster": clusterLease(namespace)}}
	under := map[string]any{"replicaCount": 0, "config": configured}
	if config, _ := values["config"].(map[string]any); config["providers"] == nil {
		configured["providers"] = map[string]any{"civo": map[string]any{"clusterID": "lab", "region": "LAB"}}
		under["secrets"] = map[string]any{"civoAPIKey": map[string]any{"name": "none"}}
	}
	return under
}

// A lab may have several releases, so each has a Lease of its own.
func clusterLease(namespace string) map[string]any {
	return map[string]any{"namespace": namespace, "name": "drydock-cluster"}
}

var webhookTimeout = regexp.MustCompile(`timeoutSeconds: \d+`)

// InstallChart applies the chart, so that Drydock has exactly the rights that the chart grants. By
// default the release enforces. It has no admission webhook, because that would affect other
// releases in the lab.
//
// The webhook's timeout is the longest that the API server allows. Otherwise, on a busy machine, a
// late answer would let a request pass that must be denied.
func (l *Lab) InstallChart(ctx context.Context, release, namespace string, values map[string]any) error {
	_, err := l.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the namespace %s: %w", namespace, err)
	}
	if values == nil {
		values = map[string]any{
			"config":    map[string]any{"mode": "enforce"},
			"admission": map[string]any{"policy": map[string]any{"enabled": false}},
		}
	}
	manifests, err := RenderChart(release, namespace, overlay(labValues(namespace, values), values))
	if err != nil {
		return err
	}
	const webhook = "drydock/templates/validatingwebhook.yaml"
	manifests[webhook] = webhookTimeout.ReplaceAllString(manifests[webhook], "timeoutSeconds: 30")
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		if err := l.Apply(ctx, []byte(manifests[name])); err != nil {
			return fmt.Errorf("applying %s: %w", name, err)
		}
	}
	return nil
}

// Apply applies the objects of a YAML stream to the API server, as `kubectl apply --server-side`
// does.
func (l *Lab) Apply(ctx context.Context, stream []byte) error {
	client, err := dynamic.NewForConfig(l.admin)
	if err != nil {
		return err
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096)
	for {
		o := &unstructured.Unstructured{}
		switch err := decoder.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading a manifest: %w", err)
		case len(o.Object) == 0:
			continue
		}
		m, err := l.mapping(o.GroupVersionKind())
		if err != nil {
			return fmt.Errorf("finding the kind %s: %w", o.GroupVersionKind(), err)
		}
		resource := dynamic.ResourceInterface(client.Resource(m.Resource))
		if o.GetNamespace() != "" {
			resource = client.Resource(m.Resource).Namespace(o.GetNamespace())
		}
		if _, err := resource.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "drydock-lab", Force: true}); err != nil {
			return fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
}

// Discovery is read once for each lab, and again if the kind is missing. Reading it for each
// manifest took most of the processor time of an install.
func (l *Lab) mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	m, err := l.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		l.kinds.Reset()
		m, err = l.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	}
	return m, err
}
