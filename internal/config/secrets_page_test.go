package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// secretKeys adds the keys that the pods mount of each Secret that the chart's values in text name.
func secretKeys(t *testing.T, text string, mounted map[string][]string) {
	t.Helper()
	file, err := os.ReadFile("../../charts/drydock/values.yaml")
	require.NoError(t, err)
	var chart, values struct {
		Secrets map[string]map[string]string
		Mounts  []struct{ Secret, Key string } `yaml:"secretMounts"`
	}
	require.NoError(t, yaml.Unmarshal(file, &chart))
	if yaml.Unmarshal([]byte(text), &values) != nil {
		return // not the chart's values
	}
	add := func(secret, key string) {
		if !slices.Contains(mounted[secret], key) {
			mounted[secret] = append(mounted[secret], key)
		}
	}
	for of, own := range values.Secrets {
		require.Contains(t, chart.Secrets, of)
		for field, key := range chart.Secrets[of] {
			if own[field] != "" {
				key = own[field]
			}
			if field != "name" {
				add(own["name"], key)
			}
		}
	}
	for _, m := range values.Mounts {
		add(m.Secret, m.Key)
	}
}

// TestThePagesPutIntoSecretsWhatTheChartMounts: a pod whose Secret lacks a key that it mounts never
// starts.
func TestThePagesPutIntoSecretsWhatTheChartMounts(t *testing.T) {
	mounted, commands := map[string][]string{}, 0
	examples, err := filepath.Glob("../../charts/drydock/examples/*.yaml")
	require.NoError(t, err)
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	deeper, err := filepath.Glob("../../docs/*/*.md")
	require.NoError(t, err)
	pages = append(pages, deeper...)
	texts := map[string]string{}
	for _, file := range append(append(examples, pages...), "../../README.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if slices.Contains(examples, file) {
			secretKeys(t, string(text), mounted)
			continue
		}
		texts[file] = string(text)
		for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			secretKeys(t, block, mounted)
		}
	}
	put := regexp.MustCompile(`--from-(?:file|literal)=([-.\w]+)`)
	for file, text := range texts {
		for _, command := range strings.Split(strings.Join(strings.Fields(text), " "), "kubectl create secret generic ")[1:] {
			command, _, _ = strings.Cut(command, "`")
			name, _, _ := strings.Cut(command, " ")
			var keys []string
			for _, key := range put.FindAllStringSubmatch(command, -1) {
				keys = append(keys, key[1])
			}
			require.ElementsMatch(t, mounted[name], keys, "%s: the keys of the Secret %s", file, name)
			commands++
		}
	}
	require.GreaterOrEqual(t, commands, 5)
}
