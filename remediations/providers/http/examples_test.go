package http

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/missing"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// TestTheExamplesAreReceivers: each example carries out an attempt once, and none after its
// deadline. It refuses an unknown machine and a wrong key, says that a command failed, and answers
// the question in docs/providers/http.md.
func TestTheExamplesAreReceivers(t *testing.T) {
	t.Parallel()
	const examples = "../../../deploy/examples/"
	for name, begin := range map[string]func(t *testing.T) []string{
		"Python": func(t *testing.T) []string {
			_, err := exec.LookPath("python3")
			missing.Need(t, "the example in Python", err)
			return []string{"python3", examples + "http_receiver.py"}
		},
		"Go": func(t *testing.T) []string {
			binary := filepath.Join(t.TempDir(), "receiver")
			out, err := exec.Command("../../../test/go", "build", "-o", binary, examples+"http-receiver/main.go").CombinedOutput()
			require.NoError(t, err, "%s", out)
			return []string{binary}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := begin(t)
			url, key, did := serving(t, run)
			c := client(t, url, time.Minute)
			c.SigningKeyFile = key
			a, machine1, machine3 := Action{c, "reboot"}, machine1, machine3
			machine1.Deadline, machine3.Deadline = time.Now().Add(time.Hour), time.Now().Add(time.Hour)
			require.Empty(t, a.Survey(t.Context(), machine1).Trouble)
			for range 2 {
				outcome, err := a.Act(t.Context(), machine1, yes)
				require.Equal(t, remediations.CallAccepted, outcome, "%v", err)
			}
			next := machine1
			next.Attempt += "1"
			outcome, err := a.Act(t.Context(), next, yes)
			require.Equal(t, remediations.CallAccepted, outcome, "%v", err)

			late := next
			late.Deadline = time.Now().Add(-time.Minute)
			outcome, err = a.Act(t.Context(), late, yes)
			require.Equal(t, remediations.CallAccepted, outcome, "an attempt that was seen before: %v", err)
			late.Attempt += "1"
			outcome, err = a.Act(t.Context(), late, yes)
			require.Equal(t, remediations.CallRefused, outcome)
			require.ErrorContains(t, err, "has passed")

			require.Contains(t, a.Survey(t.Context(), machine2).Trouble, "no machine has the UUID "+machine2.SystemUUID)
			require.Contains(t, NewReplacer(c).Survey(t.Context(), machine1).Trouble, "cannot replace this machine")
			require.Contains(t, Action{client(t, url, time.Minute), "reboot"}.Survey(t.Context(), machine1).Trouble, "the signature is wrong")
			require.Contains(t, byHand(t, url, key), `"machine": "unknown"`)
			require.Equal(t, []string{"pdu-7 plug-3", "pdu-7 plug-3"}, did(), "two attempts, the first of which came twice")

			// The command has done something before it fails, so a repeated attempt does not run it
			// again.
			for range 2 {
				outcome, err = a.Act(t.Context(), machine3, yes)
				require.Equal(t, remediations.CallUnknown, outcome)
				require.ErrorContains(t, err, "power-cycling broken: exit status 3")
			}
			require.Equal(t, []string{"pdu-7 plug-3", "pdu-7 plug-3", "broken"}, did())
		})
	}
}

// machine3 is a machine whose power-cycle fails.
var machine3 = engine.Machine{Node: "node-3", UID: "u-3", SystemUUID: "4c4c4544-0042-3510-8054-b7c04f4d3334", BootID: "b-3", Attempt: "fedabc-0-1"}

// serving starts a receiver with a key of its own. did returns the machines that its command was
// run for.
func serving(t *testing.T, run []string) (url, key string, did func() []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := l.Addr().String()
	require.NoError(t, l.Close())
	key = file(t, "key", "\x00key of the\nexample\n")
	machines := file(t, "machines.json", fmt.Sprintf(`{%q: "pdu-7 plug-3", %q: "broken"}`, machine1.SystemUUID, machine3.SystemUUID))
	done := filepath.Join(t.TempDir(), "done")
	command := file(t, "power-cycle", "#!/bin/sh\necho \"$1\" >> "+done+"\n[ \"$1\" != broken ] || exit 3\n")
	require.NoError(t, os.Chmod(command, 0o700))
	cmd := exec.Command(run[0], append(run[1:], at, key, machines, command)...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	did = func() []string {
		said, err := os.ReadFile(done)
		require.NoError(t, err)
		return strings.Split(strings.TrimSpace(string(said)), "\n")
	}
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond, "the example does not listen")
	return "http://" + at, key, did
}

// byHand runs the command in docs/providers/http.md that queries a receiver.
func byHand(t *testing.T, url, key string) string {
	t.Helper()
	for _, program := range []string{"openssl", "curl", "od", "base64"} {
		_, err := exec.LookPath(program)
		missing.Need(t, "the command of docs/providers/http.md", err)
	}
	page, err := os.ReadFile("../../../docs/providers/http.md")
	require.NoError(t, err)
	command := regexp.MustCompile("(?s)```sh\n( *body=.*?)```").FindStringSubmatch(string(page))
	require.NotNil(t, command)
	text := strings.NewReplacer("https://machines.example", url, "http-key", key).Replace(command[1])
	out, err := exec.Command("sh", "-ec", text).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.ReplaceAll(string(out), `"machine":"`, `"machine": "`)
}
