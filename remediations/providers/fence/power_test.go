package fence

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/providers/kit"
)

// FuzzPower: a power state needs an exit code and a line that agree.
func FuzzPower(f *testing.F) {
	for _, out := range []string{"Status: ON\n", "Status: OFF\n", "warning\nStatus: ON", "Status: ON\nStatus: OFF\n", "", "Status: unknown"} {
		for code := range 3 {
			f.Add(code, out)
		}
	}
	f.Fuzz(func(t *testing.T, code int, out string) {
		is := power(kit.Ran{Code: code, Out: out})
		has := func(state string) bool {
			for line := range strings.Lines(out) {
				if strings.TrimSpace(line) == "Status: "+state {
					return true
				}
			}
			return false
		}
		switch is {
		case "":
			require.False(t, code == 0 && out == "Status: ON\n" || code == 2 && out == "Status: OFF\n")
		case on:
			require.Zero(t, code)
			require.True(t, has("ON") && !has("OFF"))
		default:
			require.Equal(t, 2, code)
			require.True(t, has("OFF") && !has("ON"))
		}
	})
}
