package lab

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFolderIsRemovedByItsLabOrTheNextOne(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	open := func() *folder {
		f, err := openFolder("")
		require.NoError(t, err)
		return f
	}

	alive, killed, kept := open(), open(), open()
	require.NoError(t, killed.lock.Close()) // as if its process had died
	kept.Keep()
	kept.close()
	stopped := open()
	stopped.close()

	open()
	require.DirExists(t, alive.dir)
	require.DirExists(t, kept.dir)
	require.NoDirExists(t, killed.dir)
	require.NoDirExists(t, stopped.dir)

	_, err := openFolder(alive.dir)
	require.ErrorContains(t, err, "another lab")
}
