package sidecar

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/providers/sidecar/settings"
)

// TestTokenOfASidecarProvider: the file is read for each call, and nothing is sent in place of a
// token that cannot be read.
func TestTokenOfASidecarProvider(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	token := tokenOf(settings.Sidecar{Name: "p", TokenFile: file}, nil)
	for content, says := range map[string]string{
		" second\n":                          "",
		"\n":                                 "reading the sidecar provider p's token file " + file + ": the file is empty",
		strings.Repeat("x", maxTokenBytes+1): "reading the sidecar provider p's token file " + file + ": the file is longer than 65536 bytes",
	} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		got, err := token(t.Context())
		if says == "" {
			require.NoError(t, err)
			require.Equal(t, "second", got)
			continue
		}
		require.EqualError(t, err, says)
		require.Empty(t, got)
	}
	require.Nil(t, tokenOf(settings.Sidecar{}, nil), "no token is asked for")
}
