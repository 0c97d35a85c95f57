package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/config"
)

const project = "../../.."

func TestEverythingIsGenerated(t *testing.T) {
	files, err := generated(project)
	require.NoError(t, err)
	require.Len(t, files, 3)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(project, name))
		require.NoError(t, err, "run go run ./internal/config/gendocs")
		require.Equal(t, string(want), string(got), "%s: run go run ./internal/config/gendocs", name)
	}
}

// TestTheEditorsSchemaTakesWhatTheProgramTakes before its defaults are filled in, and refuses what
// it refuses.
func TestTheEditorsSchemaTakesWhatTheProgramTakes(t *testing.T) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(editorSchema()))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("editor.json", document))
	schema := compiler.MustCompile("editor.json")
	validate := func(text string) error {
		asJSON, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err)
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
		require.NoError(t, err)
		return schema.Validate(v)
	}
	require.NoError(t, validate(config.SmallestExample))
	require.NoError(t, validate(config.FullExample))
	const head = "apiVersion: drydock.dev/v1alpha1\nkind: Config\n"
	require.NoError(t, validate(head+"providers: {sidecars: [{name: sei}]}\n"), "sei has defaults for the rest")
	require.ErrorContains(t, validate(head+"providers: {sidecars: [{name: other}]}\n"), "missing properties 'approve', 'health', 'port', 'selector'")
	require.ErrorContains(t, validate(head+"limits: {concurrentt: 1}\n"), "concurrentt")
}
