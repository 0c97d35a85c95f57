package install

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"

	"drydock.dev/drydock/internal/lab"
)

// open are the values whose keys are the user's own.
var open = []string{
	"prometheusOperator.labels", "serviceMonitor.labels", "prometheusRule.labels", "alertmanagerConfig.labels",
	"grafanaDashboard.labels", "serviceAccount.annotations", "podAnnotations", "podLabels", "nodeSelector",
	"resources.requests", "resources.limits",
	"agent.podMonitor.labels", "agent.podAnnotations", "agent.podLabels", "agent.resources.requests", "agent.resources.limits", "agent.nodeSelector",
}

// TestAMisspeltKeyIsRefused, wherever it stands.
func TestAMisspeltKeyIsRefused(t *testing.T) {
	defaults, err := common.ReadValuesFile(filepath.Join(root(t), "charts", "drydock", "values.yaml"))
	require.NoError(t, err)
	var mappings []string
	var walk func(path string, at map[string]any)
	walk = func(path string, at map[string]any) {
		mappings = append(mappings, path)
		for _, key := range slices.Sorted(maps.Keys(at)) {
			below := strings.TrimPrefix(path+"."+key, ".")
			if further, ok := at[key].(map[string]any); ok && !slices.Contains(open, below) {
				walk(below, further)
			}
		}
	}
	walk("", defaults)
	require.Greater(t, len(mappings), 15)
	for _, path := range mappings {
		values := m{"mispelt": true}
		for _, key := range slices.Backward(strings.FieldsFunc(path, func(r rune) bool { return r == '.' })) {
			values = m{key: values}
		}
		_, err := lab.RenderChart("drydock", "drydock", values)
		require.ErrorContains(t, err, "mispelt", "%q", path)
	}
	for _, path := range open {
		var values any = m{"own": "1"}
		for _, key := range slices.Backward(strings.Split(path, ".")) {
			values = m{key: values}
		}
		_, err := lab.RenderChart("drydock", "drydock", values.(m))
		require.NoError(t, err, path)
	}
}

// TestValuesThatCannotWorkAreRefused, with a word on what to do.
func TestValuesThatCannotWorkAreRefused(t *testing.T) {
	civo := m{"civo": m{"clusterID": "c", "region": "r"}}
	for name, tc := range map[string]struct {
		values m
		says   string
	}{
		"a mode that is none":                  {m{"config": m{"mode": "enforced"}}, "at '/config/mode': value must be one of 'observe', 'enforce'"},
		"a key that the program has not":       {m{"config": m{"limits": m{"concurrentt": 2}}}, "at '/config/limits': additional properties 'concurrentt' not allowed"},
		"text in the place of a mapping":       {m{"config": m{"cluster": "prod"}}, "at '/config/cluster': got string, want object"},
		"a provider's key that it has not":     {m{"config": m{"providers": m{"civo": m{"clusterID": "c", "region": "r", "zone": "z"}}}}, "additional properties 'zone' not allowed"},
		"a sidecar that lacks what sei has":    {m{"config": m{"providers": m{"sidecars": []any{m{"name": "other"}}}}}, "missing properties 'approve', 'health', 'port', 'selector'"},
		"a provider without its key":           {m{"config": m{"providers": civo}}, "set secrets.civoAPIKey.name"},
		"a ledger without rights to it":        {m{"config": m{"ledger": m{"namespace": "other"}}}, "config.ledger.namespace must be the release's namespace"},
		"a Lease without rights to it":         {m{"config": m{"leaderElection": m{"namespace": "other"}}}, "config.leaderElection.namespace must be"},
		"a route without a token":              {m{"prometheusOperator": m{"enabled": true}, "config": m{"receiver": m{"insecure": true}}}, "alertmanagerConfig.enabled needs a token"},
		"tokens of scrapes in clear text":      {m{"metrics": m{"authentication": m{"enabled": true}}}, "set metrics.authentication.secret"},
		"the same, written out":                {m{"config": m{"metrics": m{"authenticate": true}}}, "set metrics.authentication.secret"},
		"metrics asked about and not":          {m{"metrics": m{"authentication": m{"enabled": true, "secret": "s"}}, "config": m{"metrics": m{"authenticate": false}}}, "contradict each other"},
		"metrics with two certificates":        {m{"metrics": m{"authentication": m{"enabled": true, "secret": "s", "certManager": m{"enabled": true}}}}, "exclude each other"},
		"a file outside the folder":            {m{"secretMounts": []any{m{"secret": "s", "key": "k", "path": "../x"}}}, "secretMounts"},
		"a file in the place of another":       {m{"secretMounts": []any{m{"secret": "s", "key": "k", "path": "token"}}}, "secretMounts"},
		"a port that the agents' metrics have": {m{"agent": m{"port": 9100}}, "port"},
		"a toleration that Kubernetes has not": {m{"tolerations": []any{m{"seconds": 3}}}, "tolerations"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := lab.RenderChart("drydock", "drydock", tc.values)
			require.ErrorContains(t, err, tc.says)
		})
	}
}

// TestEveryValueIsExplained on the page that helm-docs makes.
func TestEveryValueIsExplained(t *testing.T) {
	page := read(t, "charts", "drydock", "README.md")
	rows := 0
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) > 5 && !strings.HasPrefix(cells[1], "--") {
			rows++
			require.NotEmpty(t, strings.TrimSpace(cells[4]), line)
		}
	}
	require.Greater(t, rows, 40)
}
