package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOurProgramIsLinkedOnlyWhereItChanged: a program in the cache stays as it is. Half a program,
// which a killed build left, is built again. Each caller gets a file of its own.
func TestOurProgramIsLinkedOnlyWhereItChanged(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	t.Setenv("DRYDOCK_CACHE", t.TempDir())
	dir := t.TempDir()
	kept, err := Kept("ours/build")
	require.NoError(t, err)
	compile := func(name string) (inCache os.FileInfo, program string) {
		require.NoError(t, Compile(t.Context(), filepath.Join(dir, name), "./internal/lab/programs/build"))
		inCache, err := os.Stat(kept)
		require.NoError(t, err)
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return inCache, string(text)
	}
	first, program := compile("new/folder/first")
	second, same := compile("second")
	require.True(t, os.SameFile(first, second), "it is linked again")
	require.Zero(t, strings.Compare(program, same))

	require.NoError(t, os.Rename(kept, kept+building))
	require.NoError(t, os.Truncate(kept+building, first.Size()/2))
	_, again := compile("second")
	require.Zero(t, strings.Compare(program, again), "half of one is taken for the whole")

	require.ErrorContains(t, Compile(t.Context(), filepath.Join(dir, "none"), "./no/such"), "building ./no/such")
	require.NoFileExists(t, filepath.Join(dir, "none"))
}
