package hosts_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/hosts"
)

// childKey is the environment variable that marks the copy of this test binary that the test kills.
const childKey = "DRYDOCK_HOSTS_CHILD"

// If the process of hosts is killed, it leaves no process, mount or device behind. The next hosts
// remove its control groups.
func TestKilledHostsLeaveNothing(t *testing.T) {
	hosts.Need(t)
	if os.Getenv(childKey) != "" {
		h, err := hosts.New(t.Context(), hosts.Options{ControlPlane: 1, Workers: 1})
		require.NoError(t, err)
		out, err := h.Host("worker-1").Run(t.Context(), "systemctl", "is-active", "ssh.service")
		require.NoError(t, err)
		fmt.Println("child", h.Dir(), out)
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		return
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	child.Env = append(os.Environ(), childKey+"=1")
	stdin, err := child.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	dir := ""
	for lines := bufio.NewScanner(stdout); dir == "" && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "child "); ok {
			dir, _, _ = strings.Cut(text, " ")
		}
	}
	require.NotEmpty(t, dir)
	require.NotEmpty(t, groupsOf(t, child.Process.Pid))
	require.NotEmpty(t, processesOf(t, dir))
	before := devices(t)

	require.NoError(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	require.Eventually(t, func() bool { return len(processesOf(t, dir)) == 0 }, lab.Patience, tick)
	for _, group := range groupsOf(t, child.Process.Pid) {
		require.Eventually(t, func() bool {
			events, err := os.ReadFile(filepath.Join(group, "cgroup.events"))
			return err == nil && strings.Contains(string(events), "populated 0")
		}, lab.Patience, tick, "nothing of it runs")
	}
	require.Eventually(t, func() bool { return len(left(t, before)) < len(before) }, lab.Patience, tick, "its device goes: %v", before)
	after, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	require.Equal(t, string(mounts), string(after))

	h, err := hosts.New(t.Context(), hosts.Options{ControlPlane: 1, Workers: 1})
	require.NoError(t, err)
	h.Close()
	require.Empty(t, groupsOf(t, child.Process.Pid))
}

// groupsOf returns the control groups that a process has made for its hosts.
func groupsOf(t *testing.T, pid int) []string {
	t.Helper()
	var out []string
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		found, err := filepath.Glob(fmt.Sprintf("%s/drydock-lab-hosts-%d-*", dir, pid))
		require.NoError(t, err)
		out = append(out, found...)
	}
	return out
}

// processesOf returns the processes whose command line contains the folder.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var out []string
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), dir) {
			out = append(out, file)
		}
	}
	return out
}

// devices returns this machine's network devices for hosts.
func devices(t *testing.T) []string {
	t.Helper()
	all, err := net.Interfaces()
	require.NoError(t, err)
	var out []string
	for _, i := range all {
		if strings.HasPrefix(i.Name, "drydock") {
			out = append(out, i.Name)
		}
	}
	return out
}

// left returns those of the devices that still exist.
func left(t *testing.T, before []string) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(before), func(name string) bool { return !slices.Contains(devices(t), name) })
}
