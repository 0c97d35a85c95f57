// Release makes a release of Drydock in a folder, and publishes nothing. The release has static
// binaries, an image for two architectures as an OCI layout, the chart, and a manifest for krew. It
// also has a bill of materials, the provenance and checksums, which are signed if a key is given.
// The same commit and the same key give the same bytes.
//
//	go run ./internal/release -version v1.2.3 -url https://…/v1.2.3 -out dist
package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

type release struct {
	// out is the folder for the release, version its tag, and url the future address of its files.
	root, out, version, url string
	commit                  string
	// at is the commit's time. Every file in the release gets it.
	at time.Time
	// platforms are the plugin's. The other programs are built only for Linux.
	platforms   []platform
	authorities string
	// builder is a URI. Without a key, the release is not signed.
	builder string
	key     ed25519.PrivateKey

	built     []binary
	statement []byte
}

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

var all = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}}

var aVersion = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var r release
	var only, keyFile string
	var untagged bool
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.root, "root", ".", "the checkout")
	flags.StringVar(&r.out, "out", "dist", "the new folder for the release; it must not exist yet")
	flags.StringVar(&r.version, "version", "", "the version, for example v1.2.3, which is the tag of the commit")
	flags.StringVar(&r.url, "url", "", "the future URL of the files' folder, for the manifest for krew")
	flags.StringVar(&only, "platforms", "", "build only for these platforms, for example linux/amd64,darwin/arm64")
	flags.StringVar(&r.authorities, "authorities", "/etc/ssl/certs/ca-certificates.crt", "the certificate authorities for the image")
	flags.StringVar(&keyFile, "key", "", "the private key that signs the release, Ed25519 in PEM; without it nothing is signed")
	flags.StringVar(&r.builder, "builder", "https://drydock.dev/release/by-hand", "the URI of the machine or service that makes the release; the provenance names it")
	flags.BoolVar(&untagged, "untagged", false, "make the release even if the commit does not have the tag or files differ from the commit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case !aVersion.MatchString(r.version):
		return fmt.Errorf("-version is %q; write a version, for example v1.2.3", r.version)
	case !strings.HasPrefix(r.url, "https://"):
		return fmt.Errorf("-url is %q; write the https URL of the folder where the files will be", r.url)
	}
	r.platforms = slices.Clone(all)
	if only != "" {
		r.platforms = slices.DeleteFunc(r.platforms, func(p platform) bool { return !slices.Contains(strings.Split(only, ","), p.String()) })
		if len(r.platforms) != len(strings.Split(only, ",")) {
			return fmt.Errorf("-platforms is %q; the known platforms are %v", only, all)
		}
	}
	if keyFile != "" {
		var err error
		if r.key, err = readKey(keyFile); err != nil {
			return err
		}
	}
	if err := r.find(ctx, untagged); err != nil {
		return err
	}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return fmt.Errorf("making the folder of the release: %w", err)
	}
	for _, step := range []func(context.Context) error{r.binaries, r.archives, r.image, r.chart, r.materials, r.krew, r.provenance, r.checksums, r.sign} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// find refuses a commit without the version's tag, unless untagged is set.
func (r *release) find(ctx context.Context, untagged bool) error {
	var err error
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.commit, err = r.git(ctx, "rev-parse", "HEAD"); err != nil {
		return err
	}
	seconds, err := r.git(ctx, "show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("reading the commit's time: %w", err)
	}
	r.at = time.Unix(unix, 0).UTC()
	if untagged {
		return nil
	}
	tags, err := r.git(ctx, "tag", "--points-at", "HEAD")
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(tags), r.version) {
		return fmt.Errorf("commit %s does not have the tag %s: check out that tag, or set the tag", r.commit, r.version)
	}
	changed, err := r.git(ctx, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("files differ from commit %s; a release is made from a clean checkout:\n%s", r.commit, changed)
	}
	return nil
}

func (r *release) git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", r.root}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

type binary struct {
	program  string
	platform platform
	file     string
}

func (r *release) binaries(ctx context.Context) error {
	for _, p := range r.platforms {
		for _, program := range []string{"kubectl-drydock", "drydock", "drydock-agent", "drydock-backtest"} {
			if program != "kubectl-drydock" && p.os != "linux" {
				continue
			}
			b := binary{program, p, filepath.Join(r.out, ".build", p.os+"-"+p.arch, program)}
			if p.os == "windows" {
				b.file += ".exe"
			}
			file, err := filepath.Abs(b.file)
			if err != nil {
				return err
			}
			build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "nomsgpack",
				"-ldflags", fmt.Sprintf("-s -w -buildid= -X main.version=%s -X main.commit=%s", r.version, r.commit), "-o", file, "./cmd/"+program)
			build.Dir = r.root
			build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0")
			if said, err := build.CombinedOutput(); err != nil {
				return fmt.Errorf("building %s for %s: %w\n%s", program, p, err, said)
			}
			r.built = append(r.built, b)
		}
	}
	return nil
}

func (r *release) of(program string) (out []binary) {
	for _, b := range r.built {
		if b.program == program {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b binary) int { return cmp.Compare(a.platform.String(), b.platform.String()) })
	return out
}

func (r *release) path(name string) string { return filepath.Join(r.out, name) }
