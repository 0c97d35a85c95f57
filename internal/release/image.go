package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// image makes the same image as the Dockerfile, for each architecture, as an OCI layout with one
// index.
func (r *release) image(context.Context) error {
	authorities, err := os.ReadFile(r.authorities)
	if err != nil {
		return fmt.Errorf("reading the certificate authorities for the image: %w; name the file with -authorities", err)
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range r.of("drydock") {
		entries := []entry{{name: "etc/ssl/certs/ca-certificates.crt", data: authorities, mode: 0o644}}
		for _, program := range []string{"drydock", "drydock-agent"} {
			data, err := os.ReadFile(filepath.Join(filepath.Dir(b.file), program))
			if err != nil {
				return err
			}
			entries = append(entries, entry{name: program, data: data, mode: 0o755})
		}
		var packed bytes.Buffer
		if err := tarred(&packed, entries, r.at); err != nil {
			return err
		}
		one, err := r.imageOf(b.platform, packed.Bytes())
		if err != nil {
			return fmt.Errorf("making the image for %s: %w", b.platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: b.platform.os, Architecture: b.platform.arch},
		}})
	}
	path, err := layout.Write(r.path("image"), empty.Index)
	if err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": strings.TrimPrefix(r.version, "v")})); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	return nil
}

func (r *release) imageOf(p platform, packed []byte) (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: r.at}, CreatedBy: "internal/release"}})
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, r.configOf(image, p))
}

func (r *release) configOf(image v1.Image, p platform) *v1.ConfigFile {
	config, err := image.ConfigFile()
	if err != nil {
		config = &v1.ConfigFile{}
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: r.at}
	config.Config = v1.Config{
		Entrypoint: []string{"/drydock"}, User: "65532:65532", WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title": "drydock", "org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.commit,
		},
	}
	return config
}
