package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// entry is a symbolic link to the path in link, if link is set.
type entry struct {
	name, link string
	data       []byte
	mode       int64
}

// archives gives the plugin an archive for each platform, with a link under the name that kubectl
// runs for completion. The other programs share one archive for each platform.
func (r *release) archives(context.Context) error {
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return fmt.Errorf("reading the license: %w", err)
	}
	for _, b := range r.of("kubectl-drydock") {
		data, err := os.ReadFile(b.file)
		if err != nil {
			return err
		}
		entries := []entry{{name: "LICENSE", data: license, mode: 0o644}, {name: filepath.Base(b.file), data: data, mode: 0o755}}
		if b.platform.os != "windows" {
			entries = append(entries, entry{name: "kubectl_complete-drydock", link: "kubectl-drydock", mode: 0o777})
		}
		if err := r.pack(r.archive(b), entries); err != nil {
			return err
		}
	}
	for _, b := range r.of("drydock") {
		entries := []entry{{name: "LICENSE", data: license, mode: 0o644}}
		for _, program := range []string{"drydock", "drydock-agent", "drydock-backtest"} {
			data, err := os.ReadFile(filepath.Join(filepath.Dir(b.file), program))
			if err != nil {
				return err
			}
			entries = append(entries, entry{name: program, data: data, mode: 0o755})
		}
		if err := r.pack(r.archive(b), entries); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) archive(b binary) string {
	ending := ".tar.gz"
	if b.platform.os == "windows" {
		ending = ".zip"
	}
	return fmt.Sprintf("%s_%s_%s_%s%s", b.program, r.version, b.platform.os, b.platform.arch, ending)
}

func (r *release) pack(name string, entries []entry) (err error) {
	f, err := os.Create(r.path(name))
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	if filepath.Ext(name) == ".zip" {
		return zipped(f, entries, r.at)
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := tarred(z, entries, r.at); err != nil {
		return err
	}
	return z.Close()
}

func tarred(to io.Writer, entries []entry, at time.Time) error {
	t := tar.NewWriter(to)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.data)), Mode: e.mode, ModTime: at, Format: tar.FormatUSTAR}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("packing %s: %w", e.name, err)
		}
		if _, err := t.Write(e.data); err != nil {
			return fmt.Errorf("packing %s: %w", e.name, err)
		}
	}
	return t.Close()
}

func zipped(to io.Writer, entries []entry, at time.Time) error {
	z := zip.NewWriter(to)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		h.SetMode(os.FileMode(e.mode)) //nolint:gosec // one of three constants
		w, err := z.CreateHeader(h)
		if err != nil {
			return fmt.Errorf("packing %s: %w", e.name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return fmt.Errorf("packing %s: %w", e.name, err)
		}
	}
	return z.Close()
}
