package kit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/redact"
)

// program returns a script for /bin/sh as a Program with a time limit of a minute.
func program(t *testing.T, script string) Program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	// A program that another test starts meanwhile would inherit the file, and a file that is open
	// for writing cannot be started (golang/go#22315).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700))
	return Program{Path: path, Within: time.Minute, Output: 1 << 10}
}

// TestAProgramIsGivenItsInputAlone: it gets nothing else, and its exit code and both outputs are
// returned.
func TestAProgramIsGivenItsInputAlone(t *testing.T) {
	t.Setenv("SECRET_OF_ANOTHER", "horse")
	p := program(t, "cat; echo \"$# [$SECRET_OF_ANOTHER]\"; echo no >&2; exit 3\n")
	p.Input = map[string]string{"action": "status"}
	require.Equal(t, Ran{Code: 3, Out: "action=status\n0 []\n", Errors: "no\n", Began: true}, p.Run(t.Context(), nil))
}

// TestAProgramThatMayNotRunDidNothing: it was not started. The control has the permission.
func TestAProgramThatMayNotRunDidNothing(t *testing.T) {
	t.Parallel()
	done := filepath.Join(t.TempDir(), "done")
	p := program(t, "echo > "+done+"\n")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	no := errors.New("the node is well")
	var shown []string
	ctx := Previewing(t.Context(), func(what string) { shown = append(shown, what) })
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("horse\n"), 0o600))
	p.Input, p.SecretFiles, p.Secrets = map[string]string{"action": "off"}, map[string]string{"password": secret}, &redact.Keyring{}
	got := p.Run(ctx, func() error { return no })
	require.ErrorIs(t, got.Err, no)
	require.False(t, got.Began)
	require.Equal(t, []string{p.Path + " action=off password=[secret]"}, shown)
	got = p.Run(over, nil)
	require.ErrorIs(t, got.Err, context.Canceled)
	require.False(t, got.Began)
	absent := p
	absent.Path += "-absent"
	got = absent.Run(t.Context(), nil)
	require.EqualError(t, got.Err, absent.Path+" cannot be started")
	require.ErrorIs(t, got.Err, fs.ErrNotExist)
	require.False(t, got.Began)
	require.NoFileExists(t, done)
	require.Equal(t, Ran{Began: true}, p.Run(t.Context(), func() error { return nil }))
	require.FileExists(t, done)
}

// TestAProgramWithoutAnEndIsKilled: its time has ended, or its output is too long. In both cases it
// was started.
func TestAProgramWithoutAnEndIsKilled(t *testing.T) {
	t.Parallel()
	long := program(t, "while :; do echo "+strings.Repeat("x", 100)+"; done\n")
	got := long.Run(t.Context(), nil)
	require.ErrorIs(t, got.Err, errOutput)
	require.True(t, got.Began)
	require.LessOrEqual(t, len(got.Out), long.Output)

	slow := program(t, "while :; do :; done\n")
	slow.Within = 50 * time.Millisecond
	got = slow.Run(t.Context(), nil)
	require.ErrorIs(t, got.Err, context.DeadlineExceeded)
	require.True(t, got.Began)
}
