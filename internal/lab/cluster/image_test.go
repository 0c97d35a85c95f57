package cluster

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnImageIsAnArchiveThatContainerdReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "drydock")
	require.NoError(t, os.WriteFile(program, []byte("a program"), 0o600))
	archive, err := image{name: "example.com/drydock:1", program: program, user: "65532:65532"}.write(t.TempDir())
	require.NoError(t, err)

	file, err := os.Open(archive)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	whole := entries(t, file)
	var manifests []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	require.NoError(t, json.Unmarshal(whole["manifest.json"], &manifests))
	require.Len(t, manifests, 1)
	require.Equal(t, []string{"example.com/drydock:1"}, manifests[0].RepoTags)
	var config struct {
		Config struct {
			Entrypoint []string
			User       string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	require.NoError(t, json.Unmarshal(whole[manifests[0].Config], &config))
	require.Equal(t, []string{"/drydock"}, config.Config.Entrypoint)
	require.Equal(t, "65532:65532", config.Config.User)
	layer := whole[manifests[0].Layers[0]]
	require.Equal(t, []string{"sha256:" + sum(layer)}, config.RootFS.DiffIDs)
	require.Equal(t, map[string][]byte{"drydock": []byte("a program")}, entries(t, bytes.NewReader(layer)))
}

func entries(t *testing.T, archive io.Reader) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for files := tar.NewReader(archive); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		found[header.Name], err = io.ReadAll(files)
		require.NoError(t, err)
	}
}
