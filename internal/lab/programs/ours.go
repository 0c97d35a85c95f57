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

// Compile builds a program of this checkout with the flags of a release. It links in a folder of
// the cache, again only after changes, and copies the program to output. With further flags the
// cache keeps it under the name of output.
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
	// The build writes to a name of its own. A killed build leaves half a program there, which the
	// next build removes. go would treat it as complete, because go reads only the build ID at the
	// beginning.
	fresh := kept + building
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("removing what a killed build left: %w", err)
	}
	if err := os.Rename(kept, fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("preparing the build of %s: %w", pkg, err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "nomsgpack", "-ldflags", "-s -w", "-o", fresh)
	build.Args = append(build.Args, noDebugInfo) // the linker would drop it anyway
	build.Args = append(append(build.Args, further...), pkg)
	build.Dir, build.Env = root, append(append(os.Environ(), "CGO_ENABLED=0"), noGC...)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	if err := os.Rename(fresh, kept); err != nil {
		return fmt.Errorf("moving %s into the cache: %w", pkg, err)
	}
	// Another process makes the copy. If this process wrote the file, a child that another
	// goroutine starts at that moment would have it open for writing, and then the program could
	// not be started.
	if out, err := exec.CommandContext(ctx, "install", "-D", kept, output).CombinedOutput(); err != nil {
		return fmt.Errorf("copying %s from the cache: %w\n%s", pkg, err, out)
	}
	return nil
}
