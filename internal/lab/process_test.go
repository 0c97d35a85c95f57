package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
)

// helperVariable is the environment variable that makes the test binary a program that starts a lab
// and waits to be killed.
const helperVariable = "DRYDOCK_LAB_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperVariable) != "" {
		l, err := lab.Start(context.Background(), lab.Options{Components: lab.APIServerOnly})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(l.Dir())
		select {}
	}
	lab.Main(m, lab.Options{Nodes: 3, Alertmanagers: 2, NodeGrace: grace})
}

func TestNothingOutlivesAParentThatIsKilled(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	helper := exec.Command(self)
	helper.Env = append(os.Environ(), helperVariable+"=1", "TMPDIR="+t.TempDir())
	helper.Stderr = t.Output()
	out, err := helper.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, helper.Start())
	dir, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	dir = strings.TrimSpace(dir)
	require.Len(t, children(t, dir), 2)

	require.NoError(t, helper.Process.Kill())
	require.Error(t, helper.Wait())
	require.Eventually(t, func() bool { return len(children(t, dir)) == 0 }, lab.Patience, 20*time.Millisecond)
}

func shell(t *testing.T, script string) lab.Spec {
	return lab.Spec{Name: "sh", Path: "/bin/sh", Args: []string{"-c", script}, Log: filepath.Join(t.TempDir(), "sh.log")}
}

func TestAProcessThatFailsShowsItsLog(t *testing.T) {
	spec := shell(t, "echo no such luck; exit 3")
	spec.ReadyURL = "http://127.0.0.1:1/"
	_, err := lab.StartProcess(t.Context(), spec)
	require.ErrorContains(t, err, "no such luck")
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, spec.Log)

	spec = shell(t, "echo waiting; exec cat /dev/zero >/dev/null")
	spec.ReadyURL, spec.ReadyWithin = "http://127.0.0.1:1/", 5*time.Second
	_, err = lab.StartProcess(t.Context(), spec)
	require.ErrorContains(t, err, "connection refused")
	require.ErrorContains(t, err, "waiting")
}

// A process is restarted when it ends, before it was ready and afterwards, as a kubelet restarts
// the control plane's pods. A process that was killed is not restarted.
func TestAPartThatEndsIsStartedAgain(t *testing.T) {
	ready := httptest.NewUnstartedServer(http.NotFoundHandler())
	starts := filepath.Join(t.TempDir(), "starts")
	count := func() int {
		b, _ := os.ReadFile(starts)
		return strings.Count(string(b), "\n")
	}
	ready.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if count() < 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	ready.Start()
	t.Cleanup(ready.Close)
	spec := shell(t, "echo >>"+starts+"; [ $(wc -l <"+starts+") = 3 ] && exec sleep 60; exit 1")
	spec.ReadyURL, spec.Again = ready.URL, true
	p, err := lab.StartProcess(t.Context(), spec)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return count() == 3 }, lab.Patience, 20*time.Millisecond)
	p.Kill()
	require.Never(t, func() bool { return count() > 3 }, 2*time.Second, 100*time.Millisecond)
	require.NoError(t, os.Remove(starts))
	spec.Again = false
	_, err = lab.StartProcess(t.Context(), spec)
	require.ErrorContains(t, err, "it ended before it was ready", "the control")
	require.Equal(t, 1, count())
}

func TestAProcessIsSignalledStoppedAndStartedAgain(t *testing.T) {
	p, err := lab.StartProcess(t.Context(), shell(t, `trap 'echo bye; exit 0' TERM; echo up; while :; do read x </dev/zero; done`))
	require.NoError(t, err)
	require.Error(t, p.Start(t.Context()), "it is running")
	require.Eventually(t, func() bool { return strings.Contains(p.LogEnd(), "up") }, lab.Patience, 10*time.Millisecond)
	first := p.PID()
	p.Kill()
	require.ErrorContains(t, p.Wait(t.Context()), "killed")
	require.Error(t, p.Signal(syscall.SIGTERM))
	require.NoError(t, p.Start(t.Context()))
	require.NotEqual(t, first, p.PID())
	p.Kill()
}
