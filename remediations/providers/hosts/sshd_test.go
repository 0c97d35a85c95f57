package hosts

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/hosts/settings"
)

// script is the shipped script that decides which commands a host allows.
const script = "../../../deploy/hosts/drydock-host"

// standIns replace the programs that the script calls on a host without systemd: they keep
// systemd's state in a folder, and write down each word of their command line.
var standIns = map[string]string{
	"systemctl": `echo "$@" >>"$dir/log"
printf 'Description=a kubelet\nLoadState=loaded\nActiveState=active\nSubState=running\nInvocationID=%032x\n\n' "$(wc -l <"$dir/restarts")"
if [ -d "$dir/there" ]; then printf '%s\nLoadState=loaded\nActiveState=activating\nSubState=start\nInvocationID=\n' "$(cat "$dir/there/description")"
else printf 'Description=drydock-restart-kubelet.service\nLoadState=not-found\nActiveState=inactive\nSubState=dead\nInvocationID=\n'; fi`,
	"busctl": `echo "$@" >>"$dir/log"
cat "$dir/inhibitors"`,
	"journalctl": `echo "$@" >>"$dir/log"; echo "2026-11-21T12:00:00+0000 here kubelet[7]: it is stuck"`,
	"logger":     `echo "$@" >>"$dir/said"`,
	"systemd-run": `for w; do printf '%s|' "$w" >>"$dir/log"; done; echo >>"$dir/log"
if [ "$1" = --unit=drydock-reboot ]; then
	mkdir "$dir/rebooting" 2>/dev/null || { echo "Failed to start transient service unit: Unit drydock-reboot.service was already loaded or has a fragment file." >&2; exit 1; }
	echo "$2" >>"$dir/reboots"
	exit
fi
mkdir "$dir/there" 2>/dev/null || { echo "Failed to start transient service unit: Unit ${1#--unit=} was already loaded or has a fragment file." >&2; exit 1; }
printf 'Description=%s\n' "${2#--description=}" >"$dir/there/description"
echo "$2" >>"$dir/restarts"
for hold; do :; done
(while [ "$hold" -gt 0 ] && [ -d "$dir" ]; do sleep 1; hold=$((hold - 1)); done; rm -r "$dir/there") >/dev/null 2>&1 </dev/null &`,
}

// installed is the script as it is on a host, with the stand-ins behind it.
type installed struct{ dir, script string }

// bootID is the host's boot ID.
const bootID = "7d3c5a10-1111-4222-8333-944455556666"

// install installs the script with the right to reboot the host in every way.
func install(t testing.TB) installed { return installAllowing(t, "sysrq") }

func installAllowing(t testing.TB, reboot string) installed {
	t.Helper()
	dir := t.TempDir()
	in := installed{dir, filepath.Join(dir, "drydock-host")}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	for _, name := range []string{"flock", "timeout"} {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(dir, "bin", name)))
	}
	for name, body := range standIns {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", name), []byte("#!/bin/sh\ndir="+dir+"\n"+body+"\n"), 0o755))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "proc/sys/kernel/random"), 0o755))
	in.inhibited(t, "")
	in.empty(t)
	in.boots(t, bootID)
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	changed := string(text)
	for old, with := range map[string]string{"bin=/usr/bin\n": "bin=" + dir + "/bin\n", "proc=/proc\n": "proc=" + dir + "/proc\n", "reboot=no\n": "reboot=" + reboot + "\n"} {
		require.Equal(t, 1, strings.Count(changed, "\n"+old))
		changed = strings.Replace(changed, old, with, 1)
	}
	if os.Getuid() != 0 { // root's own part needs sudo, which tests do not have
		changed = strings.Replace(changed, "root=no\n", "root=yes\n", 1)
	}
	require.NoError(t, os.WriteFile(in.script, []byte(changed), 0o755))
	return in
}

// empty deletes what the stand-ins have written down.
func (in installed) empty(t testing.TB) {
	t.Helper()
	for _, name := range []string{"log", "said", "restarts", "reboots", "proc/sysrq-trigger"} {
		require.NoError(t, os.WriteFile(filepath.Join(in.dir, name), nil, 0o666))
	}
	require.NoError(t, os.RemoveAll(filepath.Join(in.dir, "rebooting")))
}

// boots puts the host into a boot of that ID.
func (in installed) boots(t testing.TB, id string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(in.dir, "proc/sys/kernel/random/boot_id"), []byte(id+"\n"), 0o644))
	require.NoError(t, os.RemoveAll(filepath.Join(in.dir, "rebooting")))
}

func (in installed) read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(in.dir, name))
	require.NoError(t, err)
	return string(text)
}

const sshd = "/usr/sbin/sshd"

func needSSHD(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(sshd); err != nil {
		t.Skip("SKIPPED, AND IT SHOULD NOT BE: there is no sshd on this machine; apt-get install openssh-server")
	}
	if os.Getuid() == 0 {
		require.NoError(t, os.MkdirAll("/run/sshd", 0o755))
	}
}

// newSSHD starts Debian's sshd on a loopback port, with the script in place of every command, and
// returns the options of a client that may log in.
func newSSHD(t *testing.T, in installed) (Options, Host) {
	t.Helper()
	needSSHD(t)
	me, err := user.Current()
	require.NoError(t, err)
	hostKey, hostPEM := newSigner(t)
	userKey, userPEM := newSigner(t)
	line, err := os.ReadFile("../../../deploy/hosts/authorized_keys")
	require.NoError(t, err)
	authorized := strings.NewReplacer("/usr/local/sbin/drydock-host", in.script, "ssh-ed25519 AAAA...", strings.TrimSpace(string(ssh.MarshalAuthorizedKey(userKey.PublicKey())))).Replace(string(line))
	path := func(name string) string { return filepath.Join(in.dir, name) }
	port := 0
	for tries := 1; ; tries++ { // until sshd has the port, another process may take it
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		port = listener.Addr().(*net.TCPAddr).Port
		require.NoError(t, listener.Close())
		for name, content := range map[string]string{
			"host_key": string(hostPEM), "key": string(userPEM), "authorized_keys": authorized,
			"known_hosts": knownhosts.Line([]string{fmt.Sprintf("[worker-1]:%d", port)}, hostKey.PublicKey()) + "\n",
			"sshd_config": fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %[2]s/host_key\nPidFile none\n"+
				"AuthorizedKeysFile %[2]s/authorized_keys\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n", port, in.dir),
		} {
			require.NoError(t, os.WriteFile(path(name), []byte(content), 0o600))
		}
		words := startSSHD(t, path("sshd_config"))
		if strings.Contains(words, "Server listening") {
			break
		}
		require.Contains(t, words, "Address already in use", "sshd ended")
		require.Less(t, tries, 4, words)
	}
	return Options{Hosts: settings.Hosts{
		User: me.Username, Port: port, KeyFile: path("key"), KnownHostsFile: path("known_hosts"), Sudo: true,
		Units: []string{"kubelet.service"}, Timeout: 2 * time.Minute,
	}, Hold: 2 * time.Second}, Host{Name: "worker-1", Addresses: []string{"127.0.0.1"}}
}

// startSSHD returns sshd's output until it listened, or ended.
func startSSHD(t *testing.T, config string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, sshd, "-D", "-e", "-f", config)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	begun := make(chan string, 1)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		var all strings.Builder
		for lines := bufio.NewScanner(said); lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "Server listening") {
				break
			}
		}
		begun <- all.String()
		_, _ = io.Copy(io.Discard, said)
	}()
	t.Cleanup(func() { cancel(); <-drained; _ = cmd.Wait() })
	select {
	case words := <-begun:
		return words
	case <-time.After(time.Minute):
		require.Fail(t, "sshd neither listens nor ends")
		return ""
	}
}

func TestOverARealSSHDWithTheShippedScript(t *testing.T) {
	t.Parallel()
	in := install(t)
	o, host := newSSHD(t, in)
	c, err := New(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)

	s, err := c.Status(t.Context(), host, "kubelet.service")
	require.NoError(t, err)
	require.True(t, s.Active)
	evidence, err := c.Evidence(t.Context(), host, "kubelet.service")
	require.NoError(t, err)
	require.Contains(t, evidence, "it is stuck")

	outcome, err := c.Restart(t.Context(), host, "kubelet.service", "n7q4k2-1-1", may)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.Contains(t, in.read(t, "log"), "--unit=drydock-restart-kubelet.service|--description=drydock:n7q4k2-1-1|--collect|--no-block|--property=Type=oneshot|"+
		"--property=ExecStartPre=-/usr/bin/systemctl restart kubelet.service|/usr/bin/sleep|2|\n")

	o.Hold = 10 * time.Minute
	c, err = New(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.Eventually(t, func() bool {
		outcome, _ = c.Restart(t.Context(), host, "kubelet.service", "other-1-1", may)
		return outcome == remediations.CallAccepted
	}, 2*time.Minute, 200*time.Millisecond, "what keeps others off ends by itself")
	outcome, err = c.Restart(t.Context(), host, "kubelet.service", "third-1-1", may)
	require.ErrorIs(t, err, ErrBusy)
	require.Equal(t, remediations.CallRefused, outcome)
	require.Equal(t, "--description=drydock:n7q4k2-1-1\n--description=drydock:other-1-1\n", in.read(t, "restarts"), "the host's log shows the restarts that were accepted, and no others")

	o.Units = []string{"kubelet.service", "sshd.service"} // which the script does not allow
	c, err = New(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	_, err = c.Status(t.Context(), host, "sshd.service")
	require.ErrorIs(t, err, errDenied)
	require.ErrorContains(t, err, "compare the units")

	o.User = "nobody-here"
	c, err = New(o)
	require.NoError(t, err)
	_, err = c.Status(t.Context(), host, "kubelet.service")
	require.ErrorIs(t, err, errDenied)
}

// rebooted is the command line of the stand-in for systemd-run.
func rebooted(attempt string) string {
	return "--unit=drydock-reboot|--description=drydock:" + attempt + "|--collect|--no-block|--property=Type=oneshot|--property=RemainAfterExit=yes|" +
		"--property=ExecStartPre=/usr/bin/sleep 1|/usr/bin/systemctl|reboot|\n"
}

// The script keeps no second list: each of the client's commands passes it word by word.
func TestTheShippedScriptLetsTheClientsCommandsThrough(t *testing.T) {
	t.Parallel()
	for _, sudo := range []bool{true, false} {
		in := install(t)
		lines, vectors := commandsFor(t, sudo, "kubelet.service", "n7q4k2-1-1")
		for _, l := range lines {
			_, err := in.run(t, l)
			require.NoError(t, err)
		}
		log := in.read(t, "log")
		require.Equal(t, "b\n", in.read(t, "proc/sysrq-trigger"))
		require.Contains(t, log, rebooted("n7q4k2-1-1"))
		for _, v := range vectors {
			if sudo && v[0] == "sudo" {
				v = v[2:]
			}
			if v[0] == helper {
				continue // its effect is tested above
			}
			require.True(t, strings.Contains(log, strings.Join(v[1:], " ")+"\n") || strings.Contains(log, strings.Join(v[1:], "|")+"|\n"), "%q in %s", v, log)
		}
	}
}

func (in installed) run(t testing.TB, line string, args ...string) (stdout string, err error) {
	cmd := exec.CommandContext(t.Context(), in.script, args...)
	cmd.Env = []string{"SSH_ORIGINAL_COMMAND=" + line}
	out, err := cmd.Output()
	return string(out), err
}

// The key allows only the commands of the list, whatever is requested.
func FuzzTheShippedScriptLetsNothingElseThrough(f *testing.F) {
	lines, _ := commandsFor(f, true, "kubelet.service", "n7q4k2-1-1")
	for _, l := range lines {
		f.Add(l, "restart", "kubelet.service", "a-1-1", "60")
		f.Add(strings.TrimPrefix(l, "sudo -n "), "journal", "kubelet.service", "", "")
		for _, evil := range []string{l + " ", l + "; id", " " + l, l + "\nid", "sudo -n " + l, strings.Replace(l, "kubelet", "sshd", 1), strings.ReplaceAll(l, "kubelet", "sshd"), strings.Replace(l, "n7q4k2-1-1", "a b", 1),
			strings.Replace(l, "n7q4k2-1-1", "*", 1), strings.Replace(l, "60", "601", 1), strings.Replace(l, "60", "60 /bin/sh", 1), strings.Replace(l, "kubelet.service", "*", 2)} {
			f.Add(evil, "restart", "sshd.service", "$(id)", "-1")
		}
	}
	for _, attempt := range []string{"$(id)", "a b", "", "A", strings.Repeat("a", 65), "a\nb"} {
		f.Add("", "restart", "kubelet.service", attempt, "60")
	}
	for _, hold := range []string{"", "0", "-1", "601", "060", "9999", "6 /bin/sh", "1e3", "99999999999999999999"} {
		f.Add("", "restart", "kubelet.service", "a-1-1", hold)
	}
	for _, id := range []string{bootID, "7d3c5a10-1111-4222-8333-944455556667", "", "*", "$(id)", bootID + " " + bootID} {
		for _, verb := range []string{"boot", "reboot", "sysrq"} {
			f.Add("/usr/local/sbin/drydock-host "+verb+" "+id+" a-1-1", verb, id, "a-1-1", "")
			f.Add("/usr/local/sbin/drydock-host "+verb, verb, id, "a b", "")
		}
	}
	f.Add("", "journal", "sshd.service", "", "")
	f.Add("", "restart", "sshd.service", "a-1-1", "60")
	f.Add("", "", "", "", "")
	f.Add("/bin/sh", "--help", "kubelet.service", "a*", "0x10")
	f.Fuzz(func(t *testing.T, line, verb, unit, attempt, hold string) {
		for _, s := range []string{line, verb, unit, attempt, hold} {
			if strings.ContainsRune(s, 0) {
				t.Skip("which no program can be given")
			}
		}
		in := install(t)
		for _, args := range [][]string{nil, {verb}, {verb, unit}, {verb, unit, attempt}, {verb, unit, attempt, hold}} {
			in.empty(t)
			said, err := in.run(t, line, args...)
			sysrq := in.read(t, "proc/sysrq-trigger")
			require.Equal(t, sysrq != "" || in.read(t, "reboots") != "", in.read(t, "said") != "", "the host's journal names each reboot")
			log, reboots := strings.CutPrefix(in.read(t, "log"), inhibitorsAsked)
			require.Equal(t, strings.HasPrefix(log, "--unit=drydock-reboot|"), reboots, "inhibitors are asked right before a reboot, and never else: %q", log)
			called := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
			require.Len(t, called, 1, "%q", called)
			switch {
			case called[0] == "" && err == nil && sysrq == "":
				require.Equal(t, bootID+" sysrq\n", said)
				continue
			case called[0] == "" && err == nil:
				require.Equal(t, "b\n", sysrq)
				require.Contains(t, line+verb+unit, "sysrq")
				require.Contains(t, line+unit, bootID)
				continue
			case called[0] == "":
				require.Error(t, err)
				require.Empty(t, sysrq)
				continue
			}
			require.Empty(t, sysrq)
			program, words := "/usr/bin/journalctl", strings.Split(called[0], " ")
			switch {
			case strings.HasPrefix(called[0], "--unit=drydock-"):
				program, words = "/usr/bin/systemd-run", strings.Split(strings.TrimSuffix(called[0], "|"), "|")
			case words[0] == "show":
				program = "/usr/bin/systemctl"
			}
			requireClosed(t, [][]string{append([]string{program}, words...)})
		}
	})
}
