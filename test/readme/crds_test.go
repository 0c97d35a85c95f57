package readme

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
)

// crds are the kinds of the Prometheus operator, which kube-prometheus-stack brings.
func crds(t *testing.T, l *lab.Lab) {
	t.Helper()
	tool := filepath.Join(root(t), "tools", "prometheus-operator")
	mod, err := os.ReadFile(filepath.Join(tool, "go.mod"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(mod), "\nrequire ")
	require.True(t, found)
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", strings.Fields(rest)[0])
	download.Dir = tool
	download.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local")
	out, err := download.Output()
	require.NoError(t, err)
	var module struct{ Dir string }
	require.NoError(t, json.Unmarshal(out, &module))
	for _, kind := range []string{"alertmanagerconfigs", "prometheusrules", "servicemonitors"} {
		text, err := os.ReadFile(filepath.Join(module.Dir, "example", "prometheus-operator-crd", "monitoring.coreos.com_"+kind+".yaml"))
		require.NoError(t, err)
		require.NoError(t, l.Apply(t.Context(), text), kind)
	}
	await(t, "the kinds of the Prometheus operator", func() bool {
		known := ""
		for _, version := range []string{"monitoring.coreos.com/v1", "monitoring.coreos.com/v1alpha1"} {
			list, err := l.Client().Discovery().ServerResourcesForGroupVersion(version)
			if err != nil {
				return false
			}
			for _, r := range list.APIResources {
				known += r.Name + " "
			}
		}
		return strings.Contains(known, "alertmanagerconfigs ") && strings.Contains(known, "prometheusrules ") && strings.Contains(known, "servicemonitors ")
	})
}
