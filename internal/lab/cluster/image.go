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
	"path"
	"runtime"
)

// image is a container image of static programs. The first program is its entrypoint.
type image struct {
	name     string
	programs []string // files; each is in the root folder of the image, with its own name
	user     string
}

// write writes the image as an archive that `ctr images import` reads.
func (i image) write(archive string) error {
	var layer bytes.Buffer
	files := tar.NewWriter(&layer)
	for _, file := range i.programs {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("making the image %s: %w", i.name, err)
		}
		if err := add(files, path.Base(file), 0o755, data); err != nil {
			return fmt.Errorf("making the image %s: %w", i.name, err)
		}
	}
	if err := files.Close(); err != nil {
		return fmt.Errorf("making the image %s: %w", i.name, err)
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/" + path.Base(i.programs[0])}, "User": i.user},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(layer.Bytes())}},
	})
	if err != nil {
		return fmt.Errorf("making the image %s: %w", i.name, err)
	}
	manifest, err := json.Marshal([]any{map[string]any{
		"Config": sum(config) + ".json", "RepoTags": []string{i.name}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return fmt.Errorf("making the image %s: %w", i.name, err)
	}
	out, err := os.Create(archive)
	if err != nil {
		return fmt.Errorf("making the image %s: %w", i.name, err)
	}
	defer out.Close()
	whole := tar.NewWriter(out)
	for _, part := range []struct {
		name string
		data []byte
	}{{sum(config) + ".json", config}, {"layer.tar", layer.Bytes()}, {"manifest.json", manifest}} {
		if err := add(whole, part.name, 0o644, part.data); err != nil {
			return fmt.Errorf("making the image %s: %w", i.name, err)
		}
	}
	if err := whole.Close(); err != nil {
		return fmt.Errorf("making the image %s: %w", i.name, err)
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
