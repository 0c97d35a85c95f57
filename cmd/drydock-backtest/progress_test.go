package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"drydock.dev/drydock/internal/backtest/history/historytest"
)

// terminal is a terminal of the kernel: what a program writes to it, and what a person then sees.
func terminal(t *testing.T) (program, person *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("this machine gives no terminals: %v", err)
	}
	require.NoError(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	return program, person
}

func TestATerminalShowsHowMuchIsRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(historytest.Config), 0o600))
	program, person := terminal(t)
	seen := make(chan string)
	go func() {
		all, _ := io.ReadAll(person) // it ends with an error when the program's side is closed
		seen <- string(all)
	}()
	var out bytes.Buffer
	args := []string{"--config", file, "--prometheus", historytest.Outage(t, until).Serve(), "--rules", "../../rules/NodeNotReady.yaml", "--since", "5h50m", "--until", "2026-03-04T03:55:00Z"}
	require.Zero(t, execute(t.Context(), args, &out, program))
	require.NoError(t, program.Close())
	lines := strings.Split(<-seen, "\r\033[K")
	require.NoError(t, person.Close())
	require.Equal(t, "["+strings.Repeat(" ", barWidth)+"] 0 % read", lines[1])
	require.Contains(t, lines, "["+strings.Repeat("=", barWidth)+"] 100 % read")
	require.Empty(t, lines[len(lines)-1], "it is gone at the end")
	require.NotContains(t, out.String(), "\033", "the report has none of it")
}

func TestTheBarSaysHowLongTheRestTakes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := until
	b := bar{out: &out, began: now, now: func() time.Time { return now }}
	now = now.Add(time.Minute)
	b.show(6*time.Hour, 24*time.Hour)
	require.Equal(t, "\r\033[K[==========                              ] 25 % read, about 3 minutes to go", out.String())
}
