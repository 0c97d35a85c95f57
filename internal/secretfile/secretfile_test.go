package secretfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
)

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// TestReadTakesWhatIsThere: also through the links of a mounted Secret, and up to the last allowed
// byte.
func TestReadTakesWhatIsThere(t *testing.T) {
	path := write(t, " secret\n")
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(path, link))
	for _, name := range []string{path, link} {
		content, err := Read("the key file", name, len(" secret\n"))
		require.NoError(t, err)
		require.Equal(t, " secret\n", string(content))
		token, err := Token("the key file", name, len(" secret\n"))
		require.NoError(t, err)
		require.Equal(t, "secret", token)
	}
	content, err := Read("the key file", write(t, ""), 10)
	require.NoError(t, err, "whether an empty file is one is for the caller to say")
	require.Empty(t, content)
}

// TestReadRefuses names the file and the reason, never the content, and never waits.
func TestReadRefuses(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	gone, folder := filepath.Join(t.TempDir(), "gone"), t.TempDir()
	long, blank := write(t, strings.Repeat("secret", 10)), write(t, " \n\t")
	for name, c := range map[string]struct {
		path, says string
		is         error
	}{
		"no name":    {"", "the key file is not configured", nil},
		"no file":    {gone, "reading the key file: open " + gone + ": no such file or directory", fs.ErrNotExist},
		"a folder":   {folder, "reading the key file: read " + folder + ": is a directory", nil},
		"a pipe":     {pipe, "reading the key file " + pipe + ": the path is not a regular file", ErrNotRegular},
		"a device":   {"/dev/zero", "reading the key file /dev/zero: the path is not a regular file", ErrNotRegular},
		"one longer": {long, "reading the key file " + long + ": the file is longer than 59 bytes", TooLong(59)},
		"one blank":  {blank, "reading the key file " + blank + ": the file is empty", nil},
	} {
		t.Run(name, func(t *testing.T) {
			token, err := Token("the key file", c.path, 59)
			require.EqualError(t, err, c.says)
			require.Empty(t, token)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
		})
	}
}

// TestTroubleIsLoggedOnce until the error changes, or comes back.
func TestTroubleIsLoggedOnce(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	var trouble Trouble
	for _, err := range []error{nil, errors.New("a"), errors.New("a"), errors.New("b"), nil, errors.New("b")} {
		trouble.Log(log, err, "unusable")
	}
	require.Len(t, lines, 3)
	for i, says := range []string{`"error"="a"`, `"error"="b"`, `"error"="b"`} {
		require.Contains(t, lines[i], says)
	}
}
