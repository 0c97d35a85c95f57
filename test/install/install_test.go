// Package install holds that the chart installs as it is, with each set of values in its ci folder: against the real API
// server, with the CRDs of the Prometheus operator and of cert-manager, and with the real Helm.
package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
)

// within bounds every wait: far beyond what it takes, so that only a fault meets it.
const within = 60 * time.Second

func TestMain(m *testing.M) {
	lab.Main(m, lab.Options{Components: lab.APIServerOnly, Nodes: 1})
}

type m = map[string]any

// root is the checkout.
func root(t *testing.T) string {
	t.Helper()
	dir, err := programs.ModuleRoot()
	require.NoError(t, err)
	return dir
}

// variants are the sets of values in ci, by name, read as Helm reads them.
func variants(t *testing.T) map[string]m {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), "charts", "drydock", "ci", "*-values.yaml"))
	require.NoError(t, err)
	out := map[string]m{}
	for _, file := range files {
		values, err := common.ReadValuesFile(file)
		require.NoError(t, err)
		out[strings.TrimSuffix(filepath.Base(file), "-values.yaml")] = values
	}
	require.GreaterOrEqual(t, len(out), 8)
	return out
}

func render(t *testing.T, release string, values m) map[string]string {
	t.Helper()
	manifests, err := lab.RenderChart(release, release, values)
	require.NoError(t, err)
	return manifests
}

// objects are those of all manifests.
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

// find is the one object of that kind among them, as the type that into points to.
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

// cluster is the lab with the CRDs that the chart's objects need.
func cluster(t *testing.T) *lab.Lab {
	t.Helper()
	l := lab.Shared(t)
	crds.Do(func() {
		for tool, files := range map[string][]string{
			"prometheus-operator": {
				"example/prometheus-operator-crd/monitoring.coreos.com_alertmanagerconfigs.yaml",
				"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
				"example/prometheus-operator-crd/monitoring.coreos.com_scrapeconfigs.yaml",
				"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
			},
			"cert-manager": {"deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_issuers.yaml"},
		} {
			dir := module(t, tool)
			for _, file := range files {
				text, err := os.ReadFile(filepath.Join(dir, file))
				require.NoError(t, err)
				require.NoError(t, l.Apply(t.Context(), text), file)
			}
		}
		for _, ns := range []string{"sei-nodes", "atlantic", "shop"} { // a provider of sidecars has rights in the namespaces that it names
			namespace(t, l, ns)
		}
		groups := func() string {
			_, all, err := l.Client().Discovery().ServerGroupsAndResources()
			if err != nil {
				return err.Error()
			}
			var kinds []string
			for _, list := range all {
				for _, r := range list.APIResources {
					kinds = append(kinds, list.GroupVersion+" "+r.Kind)
				}
			}
			return strings.Join(kinds, ", ")
		}
		require.Eventually(t, func() bool {
			known := groups()
			for _, kind := range []string{
				"monitoring.coreos.com/v1 ServiceMonitor", "monitoring.coreos.com/v1 PrometheusRule",
				"monitoring.coreos.com/v1alpha1 AlertmanagerConfig", "monitoring.coreos.com/v1alpha1 ScrapeConfig", "cert-manager.io/v1 Issuer", "cert-manager.io/v1 Certificate",
			} {
				if !strings.Contains(known, kind) {
					return false
				}
			}
			return true
		}, within, 100*time.Millisecond, "the CRDs")
	})
	return l
}

// module is the folder of the module that tools/TOOL pins, which holds nothing but CRDs for us.
func module(t *testing.T, tool string) string {
	t.Helper()
	dir := filepath.Join(root(t), "tools", tool)
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	var path string
	for line := range strings.Lines(string(mod)) {
		if rest, ok := strings.CutPrefix(line, "require "); ok {
			path = strings.Fields(rest)[0]
		}
	}
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", path)
	download.Dir = dir
	download.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local")
	out, err := download.Output()
	require.NoError(t, err, "downloading %s", path)
	var found struct{ Dir string }
	require.NoError(t, json.Unmarshal(out, &found))
	return found.Dir
}

// namespace makes one that takes only pods of the strictest standard.
func namespace(t *testing.T, l *lab.Lab, name string) {
	t.Helper()
	_, err := l.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// apply applies the release as `kubectl apply --server-side` does, and takes all of it away when the test ends.
func apply(t *testing.T, l *lab.Lab, release string, manifests map[string]string) {
	t.Helper()
	t.Cleanup(func() { sweep(t, l, release) })
	for name, text := range manifests {
		require.NoError(t, l.Apply(t.Context(), []byte(text)), name)
	}
}

// program runs one of the lab's programs and returns what it said on its standard output.
func program(t *testing.T, l *lab.Lab, name string, args ...string) string {
	t.Helper()
	paths, err := programs.Build(t.Context(), os.Stderr, name)
	require.NoError(t, err)
	var out, faults bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), paths[name], args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.AdminKubeconfig(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	cmd.Stdout, cmd.Stderr = &out, &faults
	require.NoError(t, cmd.Run(), "%s %v: %s", name, args, &faults)
	return out.String()
}
