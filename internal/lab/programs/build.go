package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Build makes sure that the named programs are in the cache, and returns their paths by name. It
// runs one go command for each module, so a package that several programs share is compiled only
// once. It writes its progress to out if a program is missing.
func Build(ctx context.Context, out io.Writer, names ...string) (map[string]string, error) {
	paths, missing, err := lookUp(ctx, out, names)
	if err != nil {
		return nil, err
	}
	if len(missing) == 0 {
		return paths, nil
	}
	if err := build(ctx, out, missing); err != nil {
		return nil, fmt.Errorf("building %s: %w", title(missing), err)
	}
	return paths, nil
}

// Fetch downloads the source of the missing programs. Build does that, too; Fetch is for callers
// that compile something else first.
func Fetch(ctx context.Context, names ...string) error {
	_, missing, err := lookUp(ctx, io.Discard, names)
	if err != nil {
		return err
	}
	unlock, err := lockAll(ctx, io.Discard, missing)
	if err != nil {
		return err
	}
	defer unlock()
	for _, g := range byModule(missing) {
		if err := g.list(ctx); err != nil {
			return fmt.Errorf("fetching the source of %s: %w", title(g.targets), err)
		}
	}
	return nil
}

// A path does not mean that the program exists yet.
func lookUp(ctx context.Context, out io.Writer, names []string) (paths map[string]string, missing []target, err error) {
	paths = map[string]string{}
	for _, name := range names {
		t, err := find(name)
		if err != nil {
			return nil, nil, err
		}
		paths[name] = t.path
		if t.built() {
			continue
		}
		if own := ownProgram(ctx, t); own != "" {
			fmt.Fprintf(out, "using your own %s: %s\n", t.name, own)
			paths[name] = own
			continue
		}
		if !slices.ContainsFunc(missing, func(m target) bool { return m.name == name }) {
			missing = append(missing, t)
		}
	}
	return paths, missing, nil
}

func build(ctx context.Context, out io.Writer, missing []target) error {
	unlock, err := lockAll(ctx, out, missing)
	if err != nil {
		return err
	}
	defer unlock()
	// Another process may have built some programs while this one waited for the lock.
	missing = slices.DeleteFunc(slices.Clone(missing), target.built)
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("the go command is not on the PATH: install the Go version that go.mod names")
	}
	p := newProgress(out, missing)
	begun := time.Now()
	p.start()
	err = compileAll(ctx, p, missing)
	if err != nil {
		p.stop("failed after %s", seconds(time.Since(begun)))
		return err
	}
	p.stop("%s built in %s", title(missing), seconds(time.Since(begun)))
	return nil
}

func compileAll(ctx context.Context, p *progress, missing []target) error {
	groups := byModule(missing)
	for _, g := range groups {
		if err := g.list(ctx); err != nil {
			return err
		}
		p.expect(g)
	}
	for _, g := range groups {
		if err := g.compile(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// The locks are always taken in the same order, so that two processes never wait for each other.
func lockAll(ctx context.Context, out io.Writer, missing []target) (unlock func(), err error) {
	sorted := slices.SortedFunc(slices.Values(missing), func(a, b target) int { return strings.Compare(a.folder, b.folder) })
	var unlocks []func()
	unlock = func() {
		for _, u := range unlocks {
			u()
		}
	}
	for _, t := range sorted {
		if err := os.MkdirAll(filepath.Dir(t.folder), 0o755); err != nil {
			unlock()
			return nil, fmt.Errorf("making the cache folder: %w", err)
		}
		u, err := lock(ctx, t.folder+".lock", func() {
			fmt.Fprintf(out, "waiting for another process that builds %s %s\n", t.name, t.version)
		})
		if err != nil {
			unlock()
			return nil, err
		}
		unlocks = append(unlocks, u)
	}
	return unlock, nil
}

func title(ts []target) string {
	if len(ts) == 1 {
		return ts[0].name + " " + ts[0].version
	}
	names := make([]string, 0, len(ts))
	for _, t := range ts {
		names = append(names, t.name)
	}
	return fmt.Sprintf("%d programs (%s)", len(ts), strings.Join(names, ", "))
}

// waits is called once if another process has the lock. It polls, because ctx cannot end a blocking
// flock.
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
