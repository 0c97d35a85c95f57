package programs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

const building = ".building" // the end of a program's name while go builds it

// Compile builds a program of this checkout as Drydock is shipped, so that tests measure the
// shipped program. It builds in a folder of the cache, where go links again only after changes, and
// copies the program before another process builds. With additional flags of go build it is another
// program, which is stored under output's name.
func Compile(ctx context.Context, output, pkg string, further ...string) error {
	root, err := ModuleRoot()
	if err != nil {
		return err
	}
	name := path.Base(pkg)
	if len(further) > 0 {
		name = filepath.Base(output)
	}
	kept, err := Kept(path.Join("ours", name))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	unlock, err := lock(ctx, kept+".lock", func() {})
	if err != nil {
		return err
	}
	defer unlock()
	// go would take a half-written program of a killed build for the whole: it reads only the build
	// ID at the start.
	fresh := kept + building
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("removing what a killed build left: %w", err)
	}
	if err := os.Rename(kept, fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("preparing the build of %s: %w", pkg, err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "nomsgpack", "-ldflags", "-s -w", "-o", fresh)
	build.Args = append(build.Args, noDebugInfo) // the linker would drop it
	build.Args = append(append(build.Args, further...), pkg)
	build.Dir, build.Env = root, append(append(os.Environ(), "CGO_ENABLED=0"), noGC...)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	if err := os.Rename(fresh, kept); err != nil {
		return fmt.Errorf("moving %s into the cache: %w", pkg, err)
	}
	// Copy with another process: while this one writes the file, a child started by another
	// goroutine would hold it open, and then the program cannot be started.
	if out, err := exec.CommandContext(ctx, "install", "-D", kept, output).CombinedOutput(); err != nil {
		return fmt.Errorf("copying %s from the cache: %w\n%s", pkg, err, out)
	}
	return nil
}
