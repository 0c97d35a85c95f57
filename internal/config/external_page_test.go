package config

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"drydock.dev/drydock/remediations"
	external "drydock.dev/drydock/remediations/providers/external/settings"
)

// TestTheExampleOfTheExternalPageLoads: the values that people copy from
// docs/providers/remediators.md are taken, and name the template.
func TestTheExampleOfTheExternalPageLoads(t *testing.T) {
	page, blocks := examples(t, "providers/remediators.md")
	require.Len(t, blocks, 1)
	var values struct{ Config map[string]any }
	require.NoError(t, yaml.Unmarshal([]byte(blocks[0]), &values))
	c, _ := mustLoad(t, asTheChart(t, values.Config))
	serves := c.Providers["external"].(*external.External).Serves()
	require.Contains(t, page, "carries out external, external-replace for "+serves.Serves())
	require.Empty(t, Capabilities(c)["external"])
	require.NotEmpty(t, Capabilities(c)["reboot"])
	require.Equal(t, remediations.Template{
		APIVersion: "self-node-remediation.medik8s.io/v1alpha1", Kind: "SelfNodeRemediationTemplate", Namespace: "self-node-remediation",
		Name: "self-node-remediation-automatic-strategy-template",
	}, c.Core.Policy("node-not-ready").Plan[0].Template)
}
