package cli

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheEstimateUsesTheFinishedPart(t *testing.T) {
	require.Empty(t, ToGo(0, 100, time.Minute))
	require.Empty(t, ToGo(50, 50, 5*time.Second), "too early for an estimate")
	require.Equal(t, ", about 3 minutes to go", ToGo(25, 75, time.Minute))
	require.Equal(t, ", about 30 seconds to go", ToGo(75, 25, 80*time.Second))
}

func TestAFileDoesNotCountAsATerminal(t *testing.T) {
	require.False(t, Terminal(&bytes.Buffer{}))
	f, err := os.Create(t.TempDir() + "/file")
	require.NoError(t, err)
	require.False(t, Terminal(f))
	require.NoError(t, f.Close())
}
