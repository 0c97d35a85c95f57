package main

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/cli"
)

func TestVersion(t *testing.T) {
	code, stdout, _ := call(t, "version")
	require.Equal(t, cli.ExitOK, code)
	require.Regexp(t, `^drydock version \S+, commit \S+, go go\S+\n$`, stdout)

	code, flag, _ := call(t, "--version")
	require.Equal(t, cli.ExitOK, code)
	require.Equal(t, stdout, flag)

	require.Equal(t, "drydock version (devel), commit unknown, go unknown", thisBuild().Line(nil))
	require.Equal(t, "drydock version v1.2.3, commit abc+dirty, go go1.26.8", thisBuild().Line(&debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
	}))
}
