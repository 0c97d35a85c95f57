package programs

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// small is a program that builds within seconds when its modules are downloaded.
const small = "gotestsum"

func TestEveryProgramIsPinnedAndHasAPlace(t *testing.T) {
	t.Setenv("DRYDOCK_CACHE", t.TempDir())
	seen := map[string]string{}
	for _, name := range Names() {
		path, err := Path(name)
		require.NoError(t, err)
		require.Equal(t, name, filepath.Base(path))
		require.Empty(t, seen[filepath.Dir(path)], "%s shares its folder", name)
		seen[filepath.Dir(path)] = name
		version, err := Version(name)
		require.NoError(t, err)
		require.Regexp(t, `^v\d+\.\d+\.\d+$`, version)
	}
	for _, name := range slices.Concat(Lab, Demo, Check) {
		require.Contains(t, Names(), name)
	}
	_, err := Path("nosuch")
	require.ErrorContains(t, err, `program "nosuch"`)
}

func TestASecondBuildIsSilentAndParallelOnesBuildOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	t.Setenv("DRYDOCK_CACHE", t.TempDir())
	var wg sync.WaitGroup
	out := make([]bytes.Buffer, 3)
	for i := range out {
		wg.Go(func() {
			paths, err := Build(t.Context(), &out[i], small)
			if err != nil || paths[small] == "" {
				t.Errorf("building: %v", err)
			}
		})
	}
	wg.Wait()
	built := 0
	for i := range out {
		built += bytes.Count(out[i].Bytes(), []byte("built in"))
	}
	require.Equal(t, 1, built)

	var silent bytes.Buffer
	paths, err := Build(t.Context(), &silent, small)
	require.NoError(t, err)
	require.Empty(t, silent.String())
	require.FileExists(t, paths[small])
}

func TestABuildThatCannotBeSaysWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want string
	}{
		"no go":      {map[string]string{"PATH": ""}, "install the Go version"},
		"no network": {map[string]string{"GOPROXY": "http://127.0.0.1:1"}, "the Go module proxy cannot be reached"},
		"no proxy":   {map[string]string{"GOPROXY": "off"}, "the Go module proxy cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DRYDOCK_CACHE", t.TempDir())
			t.Setenv("GOMODCACHE", t.TempDir())
			for key, value := range tc.env {
				t.Setenv(key, value)
			}
			var out bytes.Buffer
			_, err := Build(t.Context(), &out, small)
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, "building gotestsum v")
			path, pathErr := Path(small)
			require.NoError(t, pathErr)
			require.NoFileExists(t, path)
			left, globErr := filepath.Glob(filepath.Join(os.Getenv("DRYDOCK_CACHE"), "lab", ".building-*"))
			require.NoError(t, globErr)
			require.Empty(t, left)
		})
	}
}

func TestACancelledBuildEnds(t *testing.T) {
	t.Setenv("DRYDOCK_CACHE", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Build(ctx, &bytes.Buffer{}, small)
	require.ErrorIs(t, err, context.Canceled)
}

func TestEveryModuleUnderToolsIsUsed(t *testing.T) {
	root, err := ModuleRoot()
	require.NoError(t, err)
	entries, err := os.ReadDir(filepath.Join(root, "tools"))
	require.NoError(t, err)
	unused := map[string]bool{}
	for _, e := range entries {
		unused[e.Name()] = true
	}
	for _, p := range all {
		delete(unused, p.tool)
	}
	// internal/lab uses only the CustomResourceDefinitions of these two modules, which have no
	// program.
	require.Equal(t, map[string]bool{"README.md": true, "cert-manager": true, "prometheus-operator": true}, unused)
}

func TestTheVersionOfAReplacedModuleIsThatOfItsReplacement(t *testing.T) {
	const mod = "require (\n\ta.b/c v1.2.0 // indirect\n\ta.b/d v1.3.0\n)\n\nreplace a.b/c => a.b/c v1.1.0\n\nreplace (\n\ta.b/e => a.b/e v0.9.0\n)\n"
	require.Equal(t, "v1.1.0", pinned(mod, "a.b/c"))
	require.Equal(t, "v1.3.0", pinned(mod, "a.b/d"))
	require.Equal(t, "v0.9.0", pinned(mod, "a.b/e"))
	require.Empty(t, pinned(mod, "a.b/f"))
}
