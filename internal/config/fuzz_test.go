package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// kiloSeed is a mesh with all of its settings, and a policy about its leaders.
const kiloSeed = `
limits: {leaders: {concurrent: 2, perLocation: 1h}}
providers: {kilo: {topologyLabel: region, prometheus: ["http://p:9090"], httpConfig: {follow_redirects: false}, timeout: 5s, maxAge: 2m, allowControlPlane: true}}
policies:
- {name: leaders, match: ['a=~"b|c"'], target: {location: location}, plan: [{step: promote-leader, wait: 3m, attempts: 4}], proofFor: 60s}
`

// FuzzLoad checks that no input panics, and that a refusal has a place and a reason. A
// configuration that loads must be valid again with its defaults written out, and mean the same.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(base))
	f.Add([]byte(SmallestExample))
	f.Add([]byte(FullExample))
	f.Add([]byte(base + kiloSeed))
	files, err := filepath.Glob("testdata/bad/*.yaml")
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := load("fuzz.yaml", data, Options{SkipFiles: true})
		if err != nil {
			var faults Faults
			require.ErrorAs(t, err, &faults)
			for _, fault := range faults {
				require.Positive(t, fault.Line)
				require.NotEmpty(t, fault.Path)
				require.NotEmpty(t, fault.Message)
			}
			return
		}
		d := parse("fuzz.yaml", data, "")
		root := d.tree.(map[string]any)
		d.layOverShipped()
		loadSchema().root.fill(root, root)
		text, err := yaml.Marshal(root)
		require.NoError(t, err)
		again, _, err := load("fuzz.yaml", text, Options{SkipFiles: true})
		require.NoError(t, err)
		policies, err := c.PoliciesYAML()
		require.NoError(t, err)
		policiesAgain, err := again.PoliciesYAML()
		require.NoError(t, err)
		require.Equal(t, string(policies), string(policiesAgain))
		again.Policies, c.Policies = nil, nil // They hold where they came from.
		require.Equal(t, c, again)
	})
}
