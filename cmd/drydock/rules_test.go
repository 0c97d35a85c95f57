package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/rules"
)

func TestRules(t *testing.T) {
	files, err := rules.Names()
	require.NoError(t, err)
	code, all, _ := call(t, "rules")
	require.Equal(t, cli.ExitOK, code)
	for _, file := range files {
		require.Contains(t, all, "---\n# rules/"+file+"\n")
		want, err := rules.Read(file)
		require.NoError(t, err)
		code, one, _ := call(t, "rules", strings.TrimSuffix(file, ".yaml"))
		require.Equal(t, cli.ExitOK, code)
		require.Equal(t, string(want), one)
	}
}
