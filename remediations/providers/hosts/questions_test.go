package hosts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestQuestionsAtAnIllHostEndAndAreOneAtATime: the caller gives up and asks again, and sshd does
// not end the command that it started. The control: each question that had its turn was begun.
func TestQuestionsAtAnIllHostEndAndAreOneAtATime(t *testing.T) {
	t.Parallel()
	in := installAllowing(t, "no")
	text := in.read(t, "drydock-host")
	require.Equal(t, 1, strings.Count(text, "\nwithin=10\n"))
	require.NoError(t, os.WriteFile(in.script, []byte(strings.Replace(text, "\nwithin=10\n", "\nwithin=1\n", 1)), 0o755))
	for _, name := range []string{"journalctl", "systemctl"} {
		require.NoError(t, os.WriteFile(filepath.Join(in.dir, "bin", name), []byte("#!/bin/sh\ndir="+in.dir+`
mkdir "$dir/asked" || echo "two at once" >>"$dir/log"
trap 'rmdir "$dir/asked"; echo ended >>"$dir/log"; exit 1' TERM
echo begun >>"$dir/log"
sleep 600 & wait
`), 0o755))
	}
	var all []*exec.Cmd
	for i := range 6 {
		cmd := exec.Command(in.script)
		line := "/usr/bin/journalctl --unit=kubelet.service --lines=40 --no-pager --output=short-iso"
		if i%2 == 1 {
			line = "/usr/bin/systemctl show --property=LoadState,ActiveState,SubState,InvocationID,Description -- kubelet.service drydock-restart-kubelet.service"
		}
		cmd.Env = append(os.Environ(), "SSH_ORIGINAL_COMMAND="+line)
		require.NoError(t, cmd.Start())
		all = append(all, cmd)
	}
	ended := make(chan struct{})
	go func() {
		for _, cmd := range all {
			_ = cmd.Wait()
		}
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		for _, cmd := range all {
			_ = cmd.Process.Kill()
		}
		require.Fail(t, "questions live on")
	}
	log := in.read(t, "log")
	require.NotContains(t, log, "two at once")
	require.Positive(t, strings.Count(log, "begun"), log)
	require.Equal(t, strings.Count(log, "begun"), strings.Count(log, "ended"), log)
}
