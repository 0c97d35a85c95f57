package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestExamplesOfTheCivoPageLoad: what people copy from docs/providers/civo.md is taken as it
// stands, and replaces no GPU node.
func TestExamplesOfTheCivoPageLoad(t *testing.T) {
	_, blocks := examples(t, "providers/civo.md")
	require.Len(t, blocks, 5)
	for _, text := range blocks {
		if strings.HasPrefix(text, "providers") {
			text = base + "mode: enforce\n" + text
		} else if !strings.HasPrefix(text, "apiVersion") {
			text = base + "mode: enforce\nproviders: {civo: {clusterID: id, region: LON1, apiKeyFile: key}}\n" + text
		}
		c, warnings := mustLoad(t, text)
		for _, w := range warnings {
			if strings.Contains(w.Message, "will be skipped") {
				require.Regexp(t, "^restart-(kubelet|cni|kube-proxy) will be", w.Message, "nothing else is missing")
			}
			require.NotContains(t, w.Message, "selects only nodes with", "a policy's nodeSelector leaves no pool alone")
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
	page, err := os.ReadFile("../../docs/providers/civo.md")
	require.NoError(t, err)
	for _, c := range causes {
		require.Contains(t, string(page), "["+c.rule+"](../../rules/runbooks/"+c.rule+".md)")
	}
	for _, p := range Shipped().Policies {
		if p.Kind != remediations.KindNode {
			continue // Sei's, Kilo's, and those who have their own control plane's, and not Civo's
		}
		require.Contains(t, string(page), "`"+p.Name+"`")
	}
}

// TestTheCivoPageLimitsTheWholeInstallation: who comes from node-agent means all repairs by the
// pool and by the wait.
func TestTheCivoPageLimitsTheWholeInstallation(t *testing.T) {
	page, blocks := examples(t, "providers/civo.md")
	for _, row := range strings.Split(page, "\n") {
		if strings.Contains(row, "`CIVO_NODE_POOL_ID`") {
			require.Contains(t, row, "`providers.civo.nodeSelector`")
		}
	}
	const enforce = base + "mode: enforce\n"
	pools, _ := mustLoad(t, enforce+blocks[2])
	for _, p := range pools.Core.Providers {
		require.NotNil(t, p.NodeSelector, "%s serves some pools only", p.Name)
	}
	wait, _ := mustLoad(t, enforce+"providers: {civo: {clusterID: id, region: LON1, apiKeyFile: key}}\n"+blocks[4])
	changed := 0
	for _, p := range wait.Policies {
		for _, s := range p.Plan {
			if s.Name == "reboot" {
				require.NotEqual(t, 10*time.Minute, s.Wait, "the page forgets policy %s", p.Name)
			}
			if s.Name == "reboot" && s.Wait == 15*time.Minute {
				changed++
			}
		}
	}
	require.Equal(t, 9, changed)
}
