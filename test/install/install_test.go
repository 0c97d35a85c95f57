// Package install tests that the chart installs with each set of values in its folder ci. It uses
// the real API server, the CRDs of the Prometheus operator and of cert-manager, and the real Helm.
package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
)

func TestMain(m *testing.M) {
	limited, err := filepath.Abs("testdata/limited-priorities.yaml")
	if err != nil {
		panic(err)
	}
	lab.Main(m, lab.Options{Components: lab.APIServerOnly, Nodes: 1, APIServerFlags: []string{"--admission-control-config-file=" + limited}})
}

type m = map[string]any

// root returns the path of the checkout.
func root(t *testing.T) string {
	t.Helper()
	dir, err := programs.ModuleRoot()
	require.NoError(t, err)
	return dir
}

// variants returns the sets of values in ci by name, as Helm reads them.
func variants(t *testing.T) map[string]m {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), "charts", "drydock", "ci", "*-values.yaml"))
	require.NoError(t, err)
	tried, err := filepath.Glob(filepath.Join(root(t), "charts", "drydock", "examples", "*-values.yaml"))
	require.NoError(t, err)
	out := map[string]m{}
	for _, file := range append(files, tried...) {
		if strings.HasPrefix(filepath.Base(file), "civo-") && slices.Contains(tried, file) {
			continue // two of its values are left empty; the tests of the documentation install these files as the pages say
		}
		values, err := common.ReadValuesFile(file)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(file), "-values.yaml")
		if slices.Contains(tried, file) {
			name = "example-" + name
			if operator, ok := values["monitoring"].(m); ok { // the user fills it in, see the comment in the file
				operator["labels"] = m{"release": "kube-prometheus-stack"}
			}
		}
		out[name] = values
	}
	require.GreaterOrEqual(t, len(out), 30)
	return out
}

// serving returns the values with the admission webhook switched on.
func serving(values m) m {
	out := maps.Clone(values)
	admission, _ := out["admission"].(m)
	admission = maps.Clone(admission)
	if admission == nil {
		admission = m{}
	}
	webhook, _ := admission["webhook"].(m)
	webhook = maps.Clone(webhook)
	if webhook == nil {
		webhook = m{}
	}
	webhook["enabled"], admission["webhook"], out["admission"] = true, webhook, admission
	return out
}

func render(t *testing.T, release string, values m) map[string]string {
	t.Helper()
	manifests, err := lab.RenderChart(release, release, values)
	require.NoError(t, err)
	return manifests
}

// objects returns the objects of all manifests.
func objects(t *testing.T, manifests map[string]string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for name, text := range manifests {
		decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
		for {
			o := &unstructured.Unstructured{}
			err := decoder.Decode(&o.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
			if len(o.Object) > 0 {
				out = append(out, o)
			}
		}
	}
	return out
}

// find decodes the only object of that kind into the type that into points to.
func find(t *testing.T, all []*unstructured.Unstructured, kind, name string, into any) {
	t.Helper()
	for _, o := range all {
		if o.GetKind() == kind && o.GetName() == name {
			text, err := json.Marshal(o.Object)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, into))
			return
		}
	}
	require.Fail(t, "there is no such object", "%s %s", kind, name)
}

var crds sync.Once

// cluster returns a lab with the CRDs that the chart's objects need.
func cluster(t *testing.T) *lab.Lab {
	t.Helper()
	l := lab.Shared(t)
	crds.Do(func() {
		require.NoError(t, l.AddOperatorKinds(t.Context()))
		// These namespaces must exist: a provider of sidecars has rights in the namespaces that its
		// configuration names, and Medik8s creates its own.
		for _, ns := range []string{"sei-nodes", "atlantic", "shop", "medik8s-leases"} {
			namespace(t, l, ns)
		}
	})
	return l
}

// namespace creates a namespace that only allows pods of the strictest Pod Security Standard. It
// warns about objects that would create other pods.
func namespace(t *testing.T, l *lab.Lab, name string) {
	t.Helper()
	_, err := l.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// apply applies the release as `kubectl apply --server-side` does, and removes all of it when the
// test ends.
func apply(t *testing.T, l *lab.Lab, release string, manifests map[string]string) {
	t.Helper()
	t.Cleanup(func() { sweep(t, l, release) })
	for name, text := range manifests {
		require.NoError(t, l.Apply(t.Context(), []byte(text)), name)
	}
}

// program runs one of the lab's programs, and returns its standard output.
func program(t *testing.T, l *lab.Lab, name string, args ...string) string {
	t.Helper()
	return programWith(t, l.AdminKubeconfig(), name, args...)
}

// helmAlone runs Helm without a cluster.
func helmAlone(t *testing.T, args ...string) string {
	t.Helper()
	return programWith(t, "/nowhere", "helm", args...)
}

func programWith(t *testing.T, kubeconfig, name string, args ...string) string {
	t.Helper()
	out, faults, err := tryWith(t, kubeconfig, name, args...)
	require.NoError(t, err, "%s %v: %s", name, args, faults)
	return out
}

// try does the same as program, but the program may fail.
func try(t *testing.T, l *lab.Lab, name string, args ...string) (out, faults string, err error) {
	t.Helper()
	return tryWith(t, l.AdminKubeconfig(), name, args...)
}

func tryWith(t *testing.T, kubeconfig, name string, args ...string) (out, faults string, err error) {
	t.Helper()
	paths, err := programs.Build(t.Context(), os.Stderr, name)
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), paths[name], args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}
