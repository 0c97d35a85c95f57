package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
	"drydock.dev/drydock/remediations"
	civo "drydock.dev/drydock/remediations/providers/civo/settings"
)

// rendered returns the rendered chart with the values for Civo and these two values.
func rendered(t *testing.T, clusterID, region string) (map[string]string, error) {
	t.Helper()
	root, err := programs.ModuleRoot()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "charts", "drydock", "examples", "civo-values.yaml"))
	require.NoError(t, err)
	var values map[string]any
	require.NoError(t, yaml.Unmarshal(text, &values))
	civo := values["config"].(map[string]any)["providers"].(map[string]any)["civo"].(map[string]any)
	civo["clusterID"], civo["region"] = clusterID, region
	return lab.RenderChart("drydock", "drydock", values)
}

func TestThreeValuesInstallItAtCivo(t *testing.T) {
	manifests, err := rendered(t, "9c89d8b9-463d-45f2-8928-455eb3f3726a", "LON1")
	require.NoError(t, err)
	configuration, err := lab.RenderedConfig(manifests)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "drydock.yaml")
	require.NoError(t, os.WriteFile(file, configuration, 0o600))
	c, _, err := config.Load(file, config.Options{SkipFiles: true})
	require.NoError(t, err)
	require.Equal(t, remediations.ModeObserve, c.Mode)
	own := c.Providers["civo"].(*civo.Civo)
	require.Equal(t, "9c89d8b9-463d-45f2-8928-455eb3f3726a", own.ClusterID)
	require.Equal(t, "LON1", own.Region)
	require.Equal(t, "/etc/drydock/civo/api-key", own.APIKeyFile, "the third is a file of the Secret")
	for _, p := range c.Policies {
		require.Equal(t, remediations.ModeObserve, p.Mode, p.Name)
	}
}

func TestAnEmptyClusterIDOrRegionIsAFaultAtTheInstall(t *testing.T) {
	for _, key := range []string{"clusterID", "region"} {
		values := map[string]string{"clusterID": "9c89d8b9-463d-45f2-8928-455eb3f3726a", "region": "LON1", key: ""}
		_, err := rendered(t, values["clusterID"], values["region"])
		require.ErrorContains(t, err, "/config/providers/civo/"+key)
	}
}
