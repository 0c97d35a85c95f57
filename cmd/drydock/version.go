package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and commit are set by the linker in a release; in any other build they come from what Go notes itself.
var version, commit string

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and Go version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine(info)); err != nil {
				return fmt.Errorf("printing the version, %w", err)
			}
			return nil
		},
	}
}

// versionNow is the version alone, as logs and metrics say it.
func versionNow() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// versionLine returns what drydock version prints; info is nil in a build without modules.
func versionLine(info *debug.BuildInfo) string {
	v, revision, goVersion := version, commit, "unknown"
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
	return fmt.Sprintf("drydock version %s, commit %s, go %s", v, revision, goVersion)
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
