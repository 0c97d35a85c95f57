package programs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// The linker would drop the debug information.
const noDebugInfo = "-gcflags=all=-dwarf=false"

// A compiler collects garbage only above 1 GiB, which saves a sixth of its time. GOGC=400 would be
// slower than the default: without GOGC, a compiler first collects at 128 MiB, and with any value
// of GOGC already earlier.
var noGC = []string{"GOGC=off", "GOMEMLIMIT=1GiB"}

type group struct {
	dir, tags string
	targets   []target
	packages  []sourcePackage // in the order of go's compilation

	position map[string]float64 // the position of each package in the whole build
	end      float64            // the position of the last package
}

// The size of the source is the measure of the work.
type sourcePackage struct {
	path string
	dir  string
	size float64
}

func byModule(ts []target) []*group {
	var groups []*group
	at := map[string]*group{}
	for _, t := range ts {
		key := t.dir + "\n" + t.tags
		if at[key] == nil {
			at[key] = &group{dir: t.dir, tags: t.tags}
			groups = append(groups, at[key])
		}
		at[key].targets = append(at[key].targets, t)
	}
	return groups
}

func (g *group) flags() []string {
	flags := []string{"-mod=readonly"}
	if g.tags != "" {
		flags = append(flags, "-tags="+g.tags)
	}
	return flags
}

// GoEnv returns the environment for a go command in a folder below tools/. The user's GOFLAGS and
// workspace may not fit that module. If its go.mod requires a later Go, as karpenter's does, the go
// command downloads that Go.
func GoEnv(flags string) []string {
	return append(os.Environ(), "GOFLAGS="+flags, "GOWORK=off", "GOTOOLCHAIN=auto")
}

// Listing also downloads the modules.
func (g *group) list(ctx context.Context) error {
	args := append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles"}, g.flags()...)
	for _, t := range g.targets {
		args = append(args, t.pkgPath())
	}
	var out bytes.Buffer
	if err := g.run(ctx, args, &out, nil); err != nil {
		return err
	}
	for d := json.NewDecoder(&out); ; {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading what go list printed: %w", err)
		}
		size := 0.0
		for _, file := range p.GoFiles {
			if info, err := os.Stat(filepath.Join(p.Dir, file)); err == nil {
				size += float64(info.Size())
			}
		}
		g.packages = append(g.packages, sourcePackage{path: p.ImportPath, dir: p.Dir, size: size})
	}
}

// Each program is built in a separate folder and then renamed, so a program in the cache is always
// complete.
func (g *group) compile(ctx context.Context, p *progress) error {
	fresh, err := os.MkdirTemp(filepath.Dir(g.targets[0].folder), ".building-"+g.targets[0].name+"-")
	if err != nil {
		return fmt.Errorf("making a build folder: %w", err)
	}
	defer os.RemoveAll(fresh)
	p.building(fresh)
	args := append([]string{"build", "-v", "-trimpath", "-buildvcs=false", noDebugInfo}, g.flags()...)
	for _, t := range g.targets {
		args = append(args, "-ldflags="+t.pkgPath()+"="+t.ldflags())
	}
	args = append(args, "-o="+fresh+string(filepath.Separator))
	for _, t := range g.targets {
		args = append(args, t.pkgPath())
	}
	if err := g.run(ctx, args, nil, func(line string) { p.compiled(g, line) }); err != nil {
		return err
	}
	for _, t := range g.targets {
		if err := t.keep(filepath.Join(fresh, binaryName(t.pkgPath()))); err != nil {
			return fmt.Errorf("moving %s into the cache: %w", t.name, err)
		}
	}
	p.finished(g)
	return nil
}

func (t target) keep(binary string) error {
	folder := binary + ".folder"
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	if err := os.Rename(binary, filepath.Join(folder, t.name)); err != nil {
		return err
	}
	return os.Rename(folder, t.folder)
}

// The output goes to a log, which is kept only if the command fails. Each line is also passed to
// line.
func (g *group) run(ctx context.Context, args []string, stdout io.Writer, line func(string)) error {
	logPath := g.targets[0].folder + ".log"
	log, err := os.Create(logPath)
	if err != nil {
		return fmt.Errorf("making the build log: %w", err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = g.dir
	cmd.Env = append(append(GoEnv(""), "CGO_ENABLED=0"), noGC...)
	// The compilers that go has started must end together with go.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Stdout = stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(io.TeeReader(stderr, log))
	for readErr := error(nil); readErr == nil; {
		var text string
		if text, readErr = lines.ReadString('\n'); line != nil {
			line(strings.TrimSpace(text))
		}
	}
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return explain(err, logPath)
	}
	os.Remove(logPath) // the log is not needed after a success
	return nil
}

func explain(err error, logPath string) error {
	text, readErr := os.ReadFile(logPath)
	if readErr != nil {
		return fmt.Errorf("%w (and its log cannot be read: %w)", err, readErr)
	}
	for _, sign := range []string{"dial tcp", "no such host", "i/o timeout", "connection refused", "proxyconnect", "TLS handshake", "module lookup disabled"} {
		if strings.Contains(string(text), sign) {
			return fmt.Errorf("the Go module proxy cannot be reached: check the network and GOPROXY, then run this again (log: %s): %w", logPath, err)
		}
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	tail := lines[max(0, len(lines)-10):]
	return fmt.Errorf("go build failed: %w (log: %s)\n%s", err, logPath, strings.Join(tail, "\n"))
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// As with go build, a last element that is only a major version is not the name.
func binaryName(pkg string) string {
	if name := path.Base(pkg); !majorVersion.MatchString(name) {
		return name
	}
	return path.Base(path.Dir(pkg))
}
