package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDocumentationIsGenerated(t *testing.T) {
	got, err := os.ReadFile("../../../docs/configuration.md")
	require.NoError(t, err, "run go generate ./internal/config")
	require.Equal(t, string(page()), string(got), "run go generate ./internal/config")
}
