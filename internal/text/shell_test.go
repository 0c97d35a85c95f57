package text

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAShellTakesAWordAsItStands asks a real shell, so that a copied command cannot run anything
// else.
func TestAShellTakesAWordAsItStands(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"node-3", "a b", "it's", "$(id)", "`id`", "; rm -rf /", `\`, `"`, "*", "~", "a\tb", "", "!x", "#x"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+ShellWord(word)).Output()
		require.NoError(t, err, word)
		require.Equal(t, Line(word, maxWord), string(out))
	}
	require.Equal(t, "node-3", ShellWord("node-3"))
	require.False(t, strings.ContainsRune(ShellWord("a\x1b[2J"), '\x1b'))
}
