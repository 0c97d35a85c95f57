package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// FuzzLoad checks that no input panics, that what is refused is refused with a place and a reason, and that what
// loads is, with its defaults written out, valid again and means the same.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(base))
	f.Add([]byte(SmallestExample))
	f.Add([]byte(FullExample))
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
		require.Equal(t, c.Alertmanager, again.Alertmanager)
		require.Equal(t, c.Receiver, again.Receiver)
		require.Equal(t, c.Core.Limits, again.Core.Limits)
	})
}
