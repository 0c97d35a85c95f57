// Package version says which build of a Drydock program runs.
package version

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Build is one program's name, version and commit. If Version and Commit are empty, which the
// linker sets in a release, the functions use Go's build information.
type Build struct{ Program, Version, Commit string }

// On adds the flag --version and the command version, which print the same line.
func (b Build) On(root *cobra.Command) {
	info, _ := debug.ReadBuildInfo()
	root.Version = b.Details(info) // cobra prints "PROGRAM version" before this
	root.AddCommand(b.Command())
}

// Command returns the command version. It prints the text of Line.
func (b Build) Command() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and Go version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), b.Line(info)); err != nil {
				return fmt.Errorf("printing the version, %w", err)
			}
			return nil
		},
	}
}

// Now returns only the version, for logs and metrics.
func (b Build) Now() string {
	if b.Version != "" {
		return b.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Line returns the program's name, version, commit and Go version in one line. info is nil in a
// build without modules.
func (b Build) Line(info *debug.BuildInfo) string { return b.Program + " version " + b.Details(info) }

// Details returns the text of Line without the program's name.
func (b Build) Details(info *debug.BuildInfo) string {
	v, revision, goVersion := b.Version, b.Commit, "unknown"
	if info != nil {
		goVersion = info.GoVersion
		if v == "" {
			v = info.Main.Version
		}
		if revision == "" {
			revision = vcsRevision(info)
		}
	}
	if v == "" {
		v = "(devel)"
	}
	if revision == "" {
		revision = "unknown"
	}
	return fmt.Sprintf("%s, commit %s, go %s", v, revision, goVersion)
}

func vcsRevision(info *debug.BuildInfo) string {
	var revision, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + dirty
}
