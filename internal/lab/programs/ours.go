package programs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Compile builds programs of this checkout as Drydock is shipped: what is measured is what runs elsewhere, and what they have in
// common is compiled once. The output is a file, or a folder for several.
func Compile(ctx context.Context, output string, packages ...string) error {
	root, err := ModuleRoot()
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "nomsgpack", "-ldflags", "-s -w", "-o", output)
	build.Args = append(append(build.Args, noDebugInfo), packages...) // which the linker would drop
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0", lazyGC)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", strings.Join(packages, " and "), err, out)
	}
	return nil
}
