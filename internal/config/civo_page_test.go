package config

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestExamplesOfTheCivoPageLoad: what people copy from docs/civo.md is taken as it stands, and replaces no GPU node.
func TestExamplesOfTheCivoPageLoad(t *testing.T) {
	_, blocks := examples(t, "civo.md")
	require.Len(t, blocks, 3)
	for _, text := range blocks {
		if !strings.HasPrefix(text, "apiVersion") {
			text = base + "mode: enforce\nproviders: {civo: {clusterID: id, region: LON1, apiKeyFile: key}}\n" + text
		}
		c, warnings := mustLoad(t, text)
		for _, w := range warnings {
			if strings.Contains(w.Message, "will be skipped") {
				require.Regexp(t, "^restart-(kubelet|cni|kube-proxy) will be", w.Message, "nothing else is missing")
			}
		}
		for cause := range causes {
			if p := planFor(c, cause, gpuNode[0]); p != nil {
				require.False(t, replaces(p), p.Name)
			}
		}
	}
}

// TestTheCivoPageNamesAllThatIsShipped: each alert, each policy.
func TestTheCivoPageNamesAllThatIsShipped(t *testing.T) {
	page, err := os.ReadFile("../../docs/civo.md")
	require.NoError(t, err)
	for _, c := range causes {
		require.Contains(t, string(page), "["+c.rule+"](../rules/runbooks/"+c.rule+".md)")
	}
	for _, p := range Shipped().Policies {
		if p.Kind != remediations.KindNode {
			continue // Sei's, Kilo's, and those who have their own control plane's, and not Civo's
		}
		require.Contains(t, string(page), "`"+p.Name+"`")
	}
}
