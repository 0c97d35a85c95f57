package receiver

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestATokenThatDrydockMakesCountsBeforeItsFileIsThere: the kubelet writes the file of a Secret up
// to two minutes after the Secret has the token. Until the token is known, the server is not ready
// and answers posts with 503, so that Alertmanager posts again.
func TestATokenThatDrydockMakesCountsBeforeItsFileIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	_, err := New(Options{TokenFile: path, Recorder: &book{}})
	require.ErrorContains(t, err, path, "the control: without MadeToken the file must be there")

	var made atomic.Value
	made.Store("")
	refused := 0
	s := newServer(t, Options{TokenFile: path, MadeToken: func() string { return made.Load().(string) }, Refused: func() { refused++ }})
	start(t, s)
	code := func(token string) int {
		r := request("POST", "/v1/alerts", postOf())
		r.Header.Set("Authorization", "Bearer "+token)
		return do(s, r).Code
	}
	require.Equal(t, 503, code("of-the-secret"))
	require.Zero(t, refused, "a post that nobody could judge is not one with a wrong token")
	require.EqualError(t, s.Ready(), "the receiver's token has not been made yet")

	made.Store("of-the-secret")
	require.NoError(t, s.Ready())
	require.Equal(t, 200, code("of-the-secret"))
	require.Equal(t, 401, code("another"))
	require.Equal(t, 1, refused)

	require.NoError(t, os.WriteFile(path, []byte("of-the-file"), 0o600))
	require.Equal(t, 200, code("of-the-file"), "the file counts from when it is there")
	require.Equal(t, 401, code("of-the-secret"))
}
