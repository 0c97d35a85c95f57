package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The shipped program must be the tested and measured one, on any build machine.
func TestTheProgramIsBuiltTheSameWayEverywhere(t *testing.T) {
	for file, how := range map[string]string{
		"Makefile":                      "CGO_ENABLED=0 $(GO) build -trimpath -tags nomsgpack -ldflags '$(LDFLAGS)' -o bin/drydock",
		"Dockerfile":                    `CGO_ENABLED=0 go build -trimpath -tags nomsgpack -ldflags "$LDFLAGS" -o /drydock`,
		".ko.yaml":                      "env: [CGO_ENABLED=0]\n  flags: [-trimpath, -tags=nomsgpack]\n  ldflags: [\"{{ .Env.LDFLAGS }}\"]",
		"internal/lab/programs/ours.go": `"go", "build", "-trimpath", "-tags", "nomsgpack", "-ldflags", "-s -w", "-o", fresh`,
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		require.NoError(t, err)
		require.Contains(t, string(text), how, file)
		if strings.Contains(how, "LDFLAGS") && file != ".ko.yaml" {
			require.Regexp(t, `LDFLAGS ?:?= ?"?-s -w`, string(text), file)
		}
	}
}

// TestTheImagesCompilerIsTheModules: neither tag floats, and the Dockerfile's result has no base
// image unless a builder chooses one.
func TestTheImagesCompilerIsTheModules(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		require.NoError(t, err)
		return string(text)
	}
	_, version, _ := strings.Cut(read("go.mod"), "\ngo ")
	version, _, _ = strings.Cut(version, "\n")
	dockerfile := read("Dockerfile")
	require.Contains(t, dockerfile, "ARG GO_IMAGE=golang:"+version+"\n")
	require.Contains(t, dockerfile, "ARG BASE=scratch\n")
	for line := range strings.Lines(dockerfile) {
		if image, is := strings.CutPrefix(line, "FROM "); is {
			require.True(t, strings.HasPrefix(image, "${"), "%q is named where nobody can pin it", image)
		}
	}
}
