package hosts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestANoisyShellHidesNoReason: the shell of the host's user may print what it likes before the
// command's own message. That message alone says what was done, and people read it.
func TestANoisyShellHidesNoReason(t *testing.T) {
	noise := strings.Repeat("pyenv: cannot rehash: /home/drydock/.pyenv/shims isn't writable\n", 30)
	for says, want := range map[string]error{
		"drydock-host: booted since\n":          ErrBooted,
		"drydock-host: inhibited by a backup\n": errInhibited,
		"drydock-host: refused\n":               errDenied,
		"Failed to start transient service unit: Unit drydock-reboot.service was already loaded or has a fragment file.\n": ErrBusy,
		"Failed to start transient service unit: Unit drydock-reboot.service already exists.\n":                            ErrBusy,
		"sudo: a password is required\n":                                                 errDenied,
		"Failed to start transient service unit: Access denied\n":                        errDenied,
		"Failed to start transient service unit: Interactive authentication required.\n": errDenied,
		"Failed to start transient service unit: Connection reset by peer\n":             nil,
		"mkdir: /tmp/cache already exists\n":                                             nil,
	} {
		a := &answer{code: 1}
		a.stderr.WriteString(noise + says)
		err := a.failure()
		require.ErrorContains(t, err, strings.TrimSpace(says), "people read it")
		require.NotContains(t, err.Error(), noise[:80], says)
		if want == nil {
			for _, kind := range []error{ErrBooted, ErrBusy, errDenied, errInhibited} {
				require.NotErrorIs(t, err, kind, says)
			}
			continue
		}
		require.ErrorIs(t, err, want, says)
	}
}
