package config

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	redfish "drydock.dev/drydock/remediations/providers/redfish/settings"
)

// TestTheExampleOfTheRedfishPageLoads: the values that people copy from docs/providers/redfish.md
// are taken, name what they mount, and serve the nodes that the page says.
func TestTheExampleOfTheRedfishPageLoads(t *testing.T) {
	page, blocks := examples(t, "providers/redfish.md")
	require.Len(t, blocks, 1)
	var values struct {
		SecretMounts []struct{ Path string } `yaml:"secretMounts"`
		Config       map[string]any
	}
	require.NoError(t, yaml.Unmarshal([]byte(blocks[0]), &values))
	c, _ := mustLoad(t, asTheChart(t, values.Config))
	r := c.Providers["redfish"].(*redfish.Redfish)
	require.Empty(t, Capabilities(c)["reboot"])
	for i, file := range []string{r.BMCs[0].UsernameFile, r.BMCs[0].PasswordFile, r.BMCs[0].CAFile} {
		require.Equal(t, "/etc/drydock/"+values.SecretMounts[i].Path, file)
	}
	require.Empty(t, r.BMCs[1].CAFile, "a fingerprint goes before the authority of all")
	require.Equal(t, r.BMCs[0].CAFile, r.BMCs[2].CAFile)
	serves := r.Serves()
	require.Contains(t, page, "carries out reboot for "+serves.Serves())
	require.Equal(t, map[string]bool{"metal-1": true, "metal-2": true, "metal-3": true}, serves.Names)
}
