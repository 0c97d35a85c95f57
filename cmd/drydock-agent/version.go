package main

import build "drydock.dev/drydock/internal/version"

// The linker sets version and commit in a release.
var version, commit string

func thisBuild() build.Build {
	return build.Build{Program: "drydock-agent", Version: version, Commit: commit}
}
