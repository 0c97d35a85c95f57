package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// golden compares got with the file; with UPDATE=1 in the environment it writes the file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run the tests with UPDATE=1 to write it")
	require.Equal(t, string(want), got, "run the tests with UPDATE=1 to accept the difference")
}

func TestBadConfigurationsAreRefusedWithEveryFault(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			// Only cases whose subject is files look at them: the others need not bring any.
			looks := strings.Contains(file, "file")
			c, warnings, err := Load(file, Options{SkipFiles: !looks})
			require.Nil(t, c)
			require.Empty(t, warnings)
			var faults Faults
			require.ErrorAs(t, err, &faults)
			golden(t, strings.TrimSuffix(file, ".yaml")+".want", filepath.ToSlash(faults.Error())+"\n")
		})
	}
}
