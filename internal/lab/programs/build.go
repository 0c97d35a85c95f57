package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Build makes sure that the named programs are in the cache and returns the
// path of each. It builds one at a time, because go itself uses every core,
// and writes its progress to out. It is silent when all are there already.
func Build(ctx context.Context, out io.Writer, names ...string) (map[string]string, error) {
	paths := map[string]string{}
	for i, name := range names {
		t, err := find(name)
		if err != nil {
			return nil, err
		}
		if !t.built() {
			p := &progress{out: out, position: fmt.Sprintf("[%d/%d]", i+1, len(names))}
			if err := t.build(ctx, p); err != nil {
				return nil, fmt.Errorf("building %s %s: %w", t.name, t.version, err)
			}
		}
		paths[name] = t.path
	}
	return paths, nil
}

func (t target) build(ctx context.Context, p *progress) error {
	if err := os.MkdirAll(filepath.Dir(t.folder), 0o755); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	unlock, err := lock(ctx, t.folder+".lock", func() {
		p.line("%s waiting for another process that builds %s %s", p.position, t.name, t.version)
	})
	if err != nil {
		return err
	}
	defer unlock()
	if t.built() {
		return nil // by the process that held the lock
	}
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("the go command is not on the PATH: install the Go version that go.mod names")
	}

	p.start(t.name, t.version)
	begun := time.Now()
	if err := t.compile(ctx); err != nil {
		p.stop("failed after %s", seconds(time.Since(begun)))
		return err
	}
	p.stop("built in %s", seconds(time.Since(begun)))
	return nil
}

// compile builds into a folder of its own and renames it, so that a program
// in the cache is always a whole one.
func (t target) compile(ctx context.Context) error {
	fresh, err := os.MkdirTemp(filepath.Dir(t.folder), ".building-"+t.name+"-")
	if err != nil {
		return fmt.Errorf("making a build folder: %w", err)
	}
	defer os.RemoveAll(fresh)
	logPath := t.folder + ".log"
	log, err := os.Create(logPath)
	if err != nil {
		return fmt.Errorf("making the build log: %w", err)
	}
	defer log.Close()

	cmd := exec.CommandContext(ctx, "go", t.args(filepath.Join(fresh, t.name))...)
	cmd.Dir = t.dir
	cmd.Stdout, cmd.Stderr = log, log
	// The user's GOFLAGS or workspace may hold what does not fit this module.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=")
	// The compilers that go started must end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return explain(err, logPath)
	}
	if err := os.Rename(fresh, t.folder); err != nil {
		return fmt.Errorf("moving the program into the cache: %w", err)
	}
	os.Remove(logPath) // says nothing of interest after a success
	return nil
}

// explain turns a failed build into a sentence that says what to do.
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

// lock takes the file's lock, calling waits once if another process has it.
// It polls because a blocking flock cannot be ended by ctx.
func lock(ctx context.Context, path string, waits func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for said := false; ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if !said {
			waits()
			said = true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		}
	}
}
