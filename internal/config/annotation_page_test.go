package config

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	annotation "drydock.dev/drydock/remediations/providers/annotation/settings"
)

// TestTheExamplesOfTheAnnotationPagesLoad: the values that people copy are taken, and serve the
// nodes that the pages say.
func TestTheExamplesOfTheAnnotationPagesLoad(t *testing.T) {
	for name, want := range map[string][]annotation.Annotation{
		"providers/annotation.md": {
			{Key: "example.com/reboot", Value: "now", Done: "example.com/rebooted"},
			{Preset: "deckhouse", Key: "update.node.deckhouse.io/reboot"},
			{Key: "example.com/reboot", Value: "now", Object: &annotation.Object{APIVersion: "machine.example.com/v1", Kind: "Server"}, Namespace: "machines"},
		},
		"providers/metal3.md": {{Preset: "metal3", Key: "reboot.metal3.io", Namespace: "metal3", Object: &annotation.Object{APIVersion: "metal3.io/v1alpha1", Kind: "BareMetalHost"}}},
	} {
		page, blocks := examples(t, name)
		require.Len(t, blocks, len(want), name)
		for i, block := range blocks {
			var values struct{ Config map[string]any }
			require.NoError(t, yaml.Unmarshal([]byte(block), &values))
			c, _ := mustLoad(t, asTheChart(t, values.Config))
			p := c.Providers["annotation"].(*annotation.Annotation)
			require.Equal(t, want[i].Key, p.Key)
			require.Equal(t, want[i].Preset, p.Preset)
			require.Equal(t, want[i].Done, p.Done)
			require.Equal(t, want[i].Object, p.Object)
			require.Equal(t, want[i].Namespace, p.Namespace)
			require.Empty(t, Capabilities(c)["reboot"])
			require.NotEmpty(t, Capabilities(c)["replace"])
			serves := p.Serves()
			require.Contains(t, page, "carries out reboot for "+serves.Serves())
		}
	}
}

// TestAPresetThatNoReleaseActsOnIsWarnedOf. The control: another preset is not.
func TestAPresetThatNoReleaseActsOnIsWarnedOf(t *testing.T) {
	for preset, warned := range map[string]bool{"gardener": true, "deckhouse": false} {
		_, warnings := mustLoad(t, asTheChart(t, map[string]any{"mode": "observe", "alertmanager": map[string]any{"urls": []any{"http://a:9093"}}, "providers": map[string]any{"annotation": map[string]any{"preset": preset}}}))
		if text := lines(warnings); warned {
			require.Contains(t, text, "providers.annotation.preset: no release of the machine-controller-manager up to 0.63 acts on node.machine.gardener.cloud/trigger-reboot")
		} else {
			require.NotContains(t, text, "providers.annotation")
		}
	}
}
