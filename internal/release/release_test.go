package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/soak"
)

const (
	version = "v1.2.3-test.1"
	url     = "https://example.com/drydock/" + version
)

// clone is a checkout of the last commit in a folder of its own.
func clone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "checkout")
	out, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--no-hardlinks", filepath.Join("..", ".."), dir).CombinedOutput()
	require.NoError(t, err, string(out))
	return dir
}

// made is a release of the commit in the checkout.
func made(t *testing.T, root string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	authorities := filepath.Join(filepath.Dir(root), "authorities.crt")
	require.NoError(t, os.WriteFile(authorities, []byte("no authority\n"), 0o600))
	require.NoError(t, run(t.Context(), append([]string{
		"-root", root, "-out", out, "-version", version, "-url", url, "-untagged", "-authorities", authorities,
	}, args...)))
	return out
}

// sums are the SHA-256 of all files below the folder.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		sum := sha256.Sum256(data)
		name, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = hex.EncodeToString(sum[:])
		return err
	}))
	return out
}

// unpacked are the files of an archive, by name.
func unpacked(t *testing.T, file string) map[string][]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	out := map[string][]byte{}
	for archive := tar.NewReader(z); ; {
		h, err := archive.Next()
		if err == io.EOF { //nolint:errorlint // as documented
			return out
		}
		require.NoError(t, err)
		if out[h.Name], err = io.ReadAll(archive); h.Linkname != "" {
			out[h.Name] = []byte("-> " + h.Linkname)
		}
		require.NoError(t, err)
	}
}

// TestAReleaseIsTheSameTwiceAndInstalls: two checkouts of one commit in two folders give the same
// bytes, and what they give works.
func TestAReleaseIsTheSameTwiceAndInstalls(t *testing.T) {
	if !soak.Whole() {
		t.Skip("it builds all programs twice for all platforms; DRYDOCK_SOAK=1 runs it")
	}
	platforms := len(all)
	first := made(t, clone(t))
	files := sums(t, first)
	require.Equal(t, files, sums(t, made(t, clone(t))))

	listed := map[string]string{}
	text, err := os.ReadFile(filepath.Join(first, "SHA256SUMS"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[name] = sum
	}
	delete(files, "SHA256SUMS")
	require.Equal(t, files, listed)

	t.Run("the plugin", func(t *testing.T) {
		plugin := unpacked(t, filepath.Join(first, "kubectl-drydock_"+version+"_linux_"+runtime.GOARCH+".tar.gz"))
		require.Equal(t, "-> kubectl-drydock", string(plugin["kubectl_complete-drydock"]))
		require.NotEmpty(t, plugin["LICENSE"])
		file := filepath.Join(t.TempDir(), "kubectl-drydock")
		require.NoError(t, os.WriteFile(file, plugin["kubectl-drydock"], 0o755)) //nolint:gosec // it is run
		said, err := exec.CommandContext(t.Context(), file, "version", "--client").CombinedOutput()
		require.NoError(t, err, string(said))
		require.Contains(t, string(said), "Client: "+version+", commit ")
	})
	t.Run("krew", func(t *testing.T) {
		var k struct {
			Spec struct {
				Version   string
				Platforms []struct{ URI, SHA256, Bin string }
			}
		}
		text, err := os.ReadFile(filepath.Join(first, "krew.yaml"))
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, &k))
		require.Equal(t, version, k.Spec.Version)
		require.Len(t, k.Spec.Platforms, platforms)
		for _, p := range k.Spec.Platforms {
			name, below := strings.CutPrefix(p.URI, url+"/")
			require.True(t, below, p.URI)
			require.Equal(t, files[name], p.SHA256, name)
		}
	})
	t.Run("the chart", func(t *testing.T) {
		c, err := loader.LoadFile(filepath.Join(first, "drydock-"+strings.TrimPrefix(version, "v")+".tgz"))
		require.NoError(t, err)
		require.Equal(t, strings.TrimPrefix(version, "v"), c.Metadata.AppVersion, "the image's tag")
		require.Equal(t, "true", c.Metadata.Annotations["artifacthub.io/prerelease"])
	})
	t.Run("the image", func(t *testing.T) {
		index, err := layout.ImageIndexFromPath(filepath.Join(first, "image"))
		require.NoError(t, err)
		require.NoError(t, validate.Index(index))
		outer, err := index.IndexManifest()
		require.NoError(t, err)
		require.Len(t, outer.Manifests, 1)
		inner, err := index.ImageIndex(outer.Manifests[0].Digest)
		require.NoError(t, err)
		manifests, err := inner.IndexManifest()
		require.NoError(t, err)
		require.Len(t, manifests.Manifests, min(platforms, 2), "for each architecture of Linux")
		one, err := inner.Image(manifests.Manifests[0].Digest)
		require.NoError(t, err)
		config, err := one.ConfigFile()
		require.NoError(t, err)
		require.Equal(t, "65532:65532", config.Config.User)
		require.Equal(t, []string{"/drydock"}, config.Config.Entrypoint)
	})
	t.Run("the bill of materials", func(t *testing.T) {
		var sbom struct {
			SPDXVersion string
			Packages    []struct{ Name string }
		}
		text, err := os.ReadFile(filepath.Join(first, "drydock_"+version+".spdx.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &sbom))
		require.Equal(t, "SPDX-2.3", sbom.SPDXVersion)
		var names []string
		for _, p := range sbom.Packages {
			names = append(names, p.Name)
		}
		require.Subset(t, names, []string{"kubectl-drydock", "drydock", "drydock-agent", "drydock-backtest", "k8s.io/client-go"})
	})
}

func TestOnlyATaggedCommitIsReleased(t *testing.T) {
	root := clone(t)
	args := []string{"-root", root, "-out", filepath.Join(t.TempDir(), "dist"), "-url", url, "-authorities", "nowhere"}
	require.ErrorContains(t, run(t.Context(), append(args, "-version", "1.2")), `-version is "1.2"`)
	require.ErrorContains(t, run(t.Context(), append(args, "-version", version)), "does not have the tag "+version)
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "tag", version).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, os.WriteFile(filepath.Join(root, "new.go"), []byte("package x\n"), 0o600))
	require.ErrorContains(t, run(t.Context(), append(args, "-version", version)), "a release is made from a clean checkout")
	require.NoFileExists(t, filepath.Join(filepath.Dir(args[3]), "dist"))
}

// TestThePluginCanBeInstalledByItsVersion: by the go command, from a module proxy that has the last
// commit as a version. It refuses a module whose go.mod replaces another.
func TestThePluginCanBeInstalledByItsVersion(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the plugin")
	}
	const path = "drydock.dev/drydock"
	v := fmt.Sprintf("v0.0.0-test.%d", time.Now().UnixNano())
	proxy, bin := t.TempDir(), t.TempDir()
	served := filepath.Join(proxy, path, "@v")
	require.NoError(t, os.MkdirAll(served, 0o755))
	f, err := os.Create(filepath.Join(served, v+".zip"))
	require.NoError(t, err)
	root := clone(t)
	require.NoError(t, zip.CreateFromVCS(f, module.Version{Path: path, Version: v}, root, "HEAD", ""))
	require.NoError(t, f.Close())
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	for name, text := range map[string]string{"list": v + "\n", v + ".mod": string(mod), v + ".info": fmt.Sprintf(`{"Version":%q}`, v)} {
		require.NoError(t, os.WriteFile(filepath.Join(served, name), []byte(text), 0o600))
	}
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	cache := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		for _, dir := range []string{filepath.Join(cache, path+"@"+v), filepath.Join(cache, "cache", "download", "drydock.dev")} {
			require.NoError(t, os.RemoveAll(dir))
		}
	})
	install := exec.CommandContext(t.Context(), "go", "install", path+"/cmd/kubectl-drydock@"+v)
	install.Dir = t.TempDir()
	// With the flags of test/go, so that what the tests have compiled is not compiled again.
	install.Env = append(os.Environ(), "GOWORK=off", "GOBIN="+bin, "CGO_ENABLED=0", "GONOSUMDB=*",
		"GOFLAGS=-modcacherw -trimpath -tags=nomsgpack -gcflags=all=-dwarf=false '-ldflags=-s -w'",
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(cache, "cache", "download"))
	said, err := install.CombinedOutput()
	require.NoError(t, err, string(said))
	said, err = exec.CommandContext(t.Context(), filepath.Join(bin, "kubectl-drydock"), "--version").CombinedOutput()
	require.NoError(t, err, string(said))
	require.Contains(t, string(said), "kubectl drydock version "+v+",")
}
