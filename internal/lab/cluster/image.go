package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

type image struct {
	name    string
	program string // a file; it is in the root folder of the image, with its own name
	user    string
}

// The archive is what `ctr images import` reads.
func (i image) write(dir string) (archive string, err error) {
	archive = filepath.Join(dir, filepath.Base(i.program)+".tar")
	if err := i.writeTo(archive); err != nil {
		return "", fmt.Errorf("making the image %s: %w", i.name, err)
	}
	return archive, nil
}

func (i image) writeTo(archive string) error {
	var layer bytes.Buffer
	files := tar.NewWriter(&layer)
	data, err := os.ReadFile(i.program)
	if err != nil {
		return err
	}
	if err := add(files, filepath.Base(i.program), 0o755, data); err != nil {
		return err
	}
	if err := files.Close(); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/" + filepath.Base(i.program)}, "User": i.user},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(layer.Bytes())}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]any{map[string]any{
		"Config": sum(config) + ".json", "RepoTags": []string{i.name}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return err
	}
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer out.Close()
	whole := tar.NewWriter(out)
	for _, part := range []struct {
		name string
		data []byte
	}{{sum(config) + ".json", config}, {"layer.tar", layer.Bytes()}, {"manifest.json", manifest}} {
		if err := add(whole, part.name, 0o644, part.data); err != nil {
			return err
		}
	}
	if err := whole.Close(); err != nil {
		return err
	}
	return out.Close()
}

func add(to *tar.Writer, name string, mode int64, data []byte) error {
	if err := to.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := io.Copy(to, bytes.NewReader(data))
	return err
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
