package main

import build "drydock.dev/drydock/internal/version"

// version and commit are set by the linker in a release.
var version, commit string

func thisBuild() build.Build {
	return build.Build{Program: "drydock backtest", Version: version, Commit: commit}
}
