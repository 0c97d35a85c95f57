package programs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake makes a program that only prints its version.
func fake(t *testing.T, dir, name, says string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho '"+says+"'\n"), 0o755)) //nolint:gosec // it must run
	return path
}

func TestTheUsersOwnProgramsAreUsedWhereTheirVersionFits(t *testing.T) {
	version, err := Version("kube-apiserver")
	require.NoError(t, err)
	assets, path := t.TempDir(), t.TempDir()
	inAssets := fake(t, assets, "kube-apiserver", "Kubernetes "+version)
	onPath := fake(t, path, "prometheus", "prometheus, version 3.15.9 (branch: HEAD)")
	t.Setenv("DRYDOCK_CACHE", t.TempDir())
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	t.Setenv("PATH", path+":/bin:/usr/bin")
	t.Setenv(OwnPrograms, "1")

	var out bytes.Buffer
	paths, err := Build(t.Context(), &out, "kube-apiserver", "prometheus")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"kube-apiserver": inAssets, "prometheus": onPath}, paths)
	require.Contains(t, out.String(), "using your own kube-apiserver: "+inAssets)

	find := func(name string) target {
		found, err := find(name)
		require.NoError(t, err)
		return found
	}
	fake(t, path, "prometheus", "prometheus, version 2.53.1")
	require.Empty(t, ownProgram(t.Context(), find("prometheus")), "an older one does not fit")
	require.NotEmpty(t, ownProgram(t.Context(), find("kube-apiserver")))
	t.Setenv(OwnPrograms, "")
	require.Empty(t, ownProgram(t.Context(), find("kube-apiserver")), "tests run what is pinned")
}
