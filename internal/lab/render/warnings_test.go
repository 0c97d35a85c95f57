package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
	"drydock.dev/drydock/remediations"
)

// meant are the beginnings of warnings that the variants in ci cause on purpose.
var meant = map[string]string{
	"everything": "providers.sidecars[0]: the token is sent over unencrypted http",
	"hosts":      "policies[0]: policy fence also selects GPU nodes",
	"limits":     "policies[0].plan",
	"minimal":    "alertmanager.watchdog: no Watchdog is configured",
	"sei":        "providers.sidecars[0]: the token is sent over unencrypted http",
}

// steps are those steps of shipped policies about nodes that a provider carries out.
var steps = []string{"reboot", "replace", "restart-kubelet", "restart-containerd", "restart-cni", "restart-kube-proxy"}

// TestExamplesAndVariantsLoadWithoutWarnings: users cannot act on a warning about the shipped
// chart, and it hides the important ones.
func TestExamplesAndVariantsLoadWithoutWarnings(t *testing.T) {
	root, err := programs.ModuleRoot()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(root, "charts", "drydock", "*", "*-values.yaml"))
	require.NoError(t, err)
	require.Greater(t, len(files), 35, "examples and ci")
	for _, file := range files {
		folder, name := filepath.Base(filepath.Dir(file)), strings.TrimSuffix(filepath.Base(file), "-values.yaml")
		t.Run(folder+"/"+name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var values map[string]any
			require.NoError(t, yaml.Unmarshal(text, &values))
			fill(values)
			manifests, err := lab.RenderChart("drydock", "drydock", values)
			require.NoError(t, err)
			text, err = lab.RenderedConfig(manifests)
			require.NoError(t, err)
			loaded := filepath.Join(t.TempDir(), "drydock.yaml")
			require.NoError(t, os.WriteFile(loaded, text, 0o600))
			c, warnings, err := config.Load(loaded, config.Options{SkipFiles: true})
			require.NoError(t, err, "%s", text)
			if folder == "examples" {
				require.Empty(t, warnings)
				require.NotEmpty(t, c.Unused, "a line that is no warning says what is not used")
			}
			for _, w := range warnings {
				said := w.Path + ": " + w.Message
				if start, ok := meant[name]; ok && strings.HasPrefix(said, start) {
					continue
				}
				require.Equal(t, "policies", w.Path, said)
				require.False(t, slices.ContainsFunc(c.Core.Providers, func(p remediations.Provider) bool {
					return slices.ContainsFunc(p.Steps, func(s string) bool { return slices.Contains(steps, s) })
				}), "a warning where shipped policies repair nodes: %s", said)
			}
		})
	}
}

// fill sets the values that the examples leave to the user.
func fill(values map[string]any) {
	if operator, ok := values["monitoring"].(map[string]any); ok {
		operator["labels"] = map[string]any{"release": "kube-prometheus-stack"}
	}
	config, _ := values["config"].(map[string]any)
	providers, _ := config["providers"].(map[string]any)
	if civo, ok := providers["civo"].(map[string]any); ok && civo["clusterID"] == "" {
		civo["clusterID"], civo["region"] = "9c89d8b9-463d-45f2-8928-455eb3f3726a", "LON1"
	}
}
