package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

const nextBoot = "9f5e7c32-3333-4444-a555-166677778888"

// One boot is ended once: while the host shuts down systemd refuses a second attempt, and
// afterwards the boot ID is different.
func TestABootIsEndedOnceByTheShippedScript(t *testing.T) {
	t.Parallel()
	in := installAllowing(t, "yes")
	o, host := newSSHD(t, in)
	c, err := New(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	b, err := c.Boot(t.Context(), host)
	require.NoError(t, err)
	require.Equal(t, Boot{ID: bootID}, b)

	outcome, err := c.Reboot(t.Context(), host, Clean, bootID, "n1-0-1", may)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.Contains(t, in.read(t, "log"), rebooted("n1-0-1"))

	outcome, err = c.Reboot(t.Context(), host, Clean, bootID, "n1-0-2", may)
	require.ErrorIs(t, err, ErrBusy)
	require.Equal(t, remediations.CallRefused, outcome)

	in.boots(t, nextBoot)
	for _, attempt := range []string{"n1-0-1", "n1-0-2"} {
		outcome, err = c.Reboot(t.Context(), host, Clean, bootID, attempt, may)
		require.ErrorIs(t, err, ErrBooted)
		require.ErrorContains(t, err, nextBoot)
		require.Equal(t, remediations.CallRefused, outcome)
	}
	require.Equal(t, "--description=drydock:n1-0-1\n", in.read(t, "reboots"))

	// The control: with the present boot ID the host is rebooted.
	outcome, err = c.Reboot(t.Context(), host, Clean, nextBoot, "n2-0-1", may)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
}

// The host itself compares the boot ID in the command that reboots. If it booted between Drydock's
// look and that command, nothing is ended.
func TestABootBetweenTheLookAndTheCommandIsNotEnded(t *testing.T) {
	t.Parallel()
	for _, how := range []How{Clean, Sysrq} {
		in := install(t)
		o, host := newSSHD(t, in)
		c, err := New(o)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		outcome, err := c.Reboot(t.Context(), host, how, bootID, "n1-0-1", func() error {
			in.boots(t, nextBoot)
			return nil
		})
		require.ErrorIs(t, err, ErrBooted)
		require.Equal(t, remediations.CallRefused, outcome)
		require.Empty(t, in.read(t, "reboots")+in.read(t, "proc/sysrq-trigger"))
		outcome, err = c.Reboot(t.Context(), host, how, nextBoot, "n1-0-1", may)
		require.NoError(t, err, "the control")
		require.Equal(t, remediations.CallAccepted, outcome)
		require.NotEmpty(t, in.read(t, "reboots")+in.read(t, "proc/sysrq-trigger"))
	}
}

// A reboot that a host does not allow is not done, and the survey reports it before an attempt is
// spent.
func TestAHostIsRebootedInTheWaysThatItAllows(t *testing.T) {
	t.Parallel()
	for allows, may := range map[string]map[How]bool{"no": {}, "yes": {Clean: true}, "sysrq": {Clean: true, Sysrq: true}} {
		in := installAllowing(t, allows)
		o, host := newSSHD(t, in)
		c, err := New(o)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		for _, how := range []How{Clean, Sysrq} {
			in.empty(t)
			r := rebooterOf(c, host, bootID)
			r.How = how
			m := engine.Machine{Node: host.Name, UID: "u1", Attempt: "n1-0-1"}
			survey := r.Survey(t.Context(), m)
			require.Equal(t, may[how], survey.Trouble == "", "%s where %s is allowed: %s", how, allows, survey.Trouble)
			// A direct call of the script is refused as well, as the drydock user and as root.
			_, asUser := in.run(t, "sudo -n "+helper+" "+string(how)+" "+bootID+" n1-0-1")
			require.Equal(t, may[how], asUser == nil)
			in.empty(t)
			_, asRoot := in.run(t, "", string(how), bootID, "n1-0-1")
			require.Equal(t, may[how], asRoot == nil)
			in.empty(t)
			m.Before = remediations.Keeping(before{BootID: bootID}).Before
			outcome, err := r.Act(t.Context(), m, func() error { return nil })
			require.Equal(t, may[how], outcome == remediations.CallAccepted, "%v", err)
			require.Equal(t, may[how] && how == Clean, in.read(t, "reboots") != "")
			require.Equal(t, may[how] && how == Sysrq, in.read(t, "proc/sysrq-trigger") == "b\n")
			require.Equal(t, may[how], strings.Contains(in.read(t, "said"), "for attempt n1-0-1 of a repair\n"))
			if !may[how] {
				require.ErrorIs(t, err, errDenied)
				require.Equal(t, remediations.CallRefused, outcome)
				require.Equal(t, remediations.AskMended, survey.Again)
			}
		}
	}
}

// The line in the host's journal is worth no repair: a host whose logger never ends, or does not
// exist, is rebooted all the same.
func TestAHostWhoseJournalHangsIsRebooted(t *testing.T) {
	t.Parallel()
	for name, logger := range map[string]string{"it hangs": "#!/bin/sh\nexec sleep 600\n", "it is no program": ""} {
		for _, how := range []How{Clean, Sysrq} {
			t.Run(fmt.Sprintf("%s, %s", name, how), func(t *testing.T) {
				t.Parallel()
				in := install(t)
				require.NoError(t, os.WriteFile(filepath.Join(in.dir, "bin/logger"), []byte(logger), 0o755))
				_, err := in.run(t, "", string(how), bootID, "n1-0-1")
				require.NoError(t, err)
				require.Equal(t, how == Sysrq, in.read(t, "proc/sysrq-trigger") == "b\n")
				require.Equal(t, how == Clean, in.read(t, "reboots") != "")
			})
		}
	}
}

// The step reboot is a clean one, soft or not, even if the host allows sysrq: that is a step of its
// own.
func TestARebootIsNeverBySysrq(t *testing.T) {
	t.Parallel()
	in := install(t)
	o, host := newSSHD(t, in)
	c, err := New(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for _, how := range []How{Clean, Sysrq} {
		for _, soft := range []bool{false, true} {
			in.empty(t)
			r := rebooterOf(c, host, bootID)
			r.How = how
			outcome, err := r.Act(t.Context(), engine.Machine{
				Node: host.Name, UID: "u1", Attempt: "n1-0-1", Soft: soft, Before: remediations.Keeping(before{BootID: bootID}).Before,
			}, may)
			require.NoError(t, err)
			require.Equal(t, remediations.CallAccepted, outcome)
			require.Equal(t, how == Sysrq, in.read(t, "proc/sysrq-trigger") == "b\n")
			require.Equal(t, how == Clean, in.read(t, "reboots") != "")
		}
	}
}

func rebooterOf(c *Client, host Host, reported string) Rebooter {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: host.Name, UID: "u1"},
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: reported}, Addresses: addresses(host.Addresses...)},
	}
	return Rebooter{Machines{c, nodes{n}, []corev1.NodeAddressType{corev1.NodeInternalIP}}, Clean}
}

// A boot that the kubelet has not reported is not ended: its end would prove nothing.
func TestARebootIsOfTheBootThatTheNodeReports(t *testing.T) {
	t.Parallel()
	answer := bootID + " yes\n"
	s := newSite(t)
	s.answers = func(_ string, ch ssh.Channel) (int, bool) {
		_, _ = ch.Write([]byte(answer))
		return 0, true
	}
	c := s.client(t)
	m := engine.Machine{Node: s.host.Name, UID: "u1", Attempt: "n1-0-1"}
	survey := rebooterOf(c, s.host, bootID).Survey(t.Context(), m)
	require.Empty(t, survey.Trouble, "the control")
	require.JSONEq(t, `{"bootID":"`+bootID+`"}`, string(survey.Before))
	for _, reported := range []string{nextBoot, "", strings.ToUpper(bootID)} {
		survey = rebooterOf(c, s.host, reported).Survey(t.Context(), m)
		require.Contains(t, survey.Trouble, "the kubelet has not started since the last boot")
		require.Equal(t, remediations.AskPassing, survey.Again)
		require.Empty(t, survey.Before)
	}
	for _, odd := range []string{"", "yes\n", bootID + "\n", bootID + " no\n", bootID + " yes please\n", bootID + "0 yes\n", "\n" + bootID + "\n yes", "drydock-host: " + bootID + " yes"} {
		answer = odd
		survey = rebooterOf(c, s.host, bootID).Survey(t.Context(), m)
		require.Contains(t, survey.Trouble, "install the drydock-host of this Drydock version", "%q", odd)
	}
	for _, kept := range []remediations.Before{"", `{}`, `{"bootID":""}`, `{"bootID":"x"}`, `{"instance":"i-1"}`} {
		m.Before = kept
		outcome, err := rebooterOf(c, s.host, bootID).Act(t.Context(), m, may)
		require.Error(t, err)
		require.Equal(t, remediations.CallRefused, outcome)
	}
}

// sudo runs the command after this warning.
const cannotResolve = "!sudo: unable to resolve host n1: Temporary failure in name resolution"

// Only the host's own confirmation of the reboot is "accepted". If systemd could not be called,
// nothing was done.
func TestWhatBecameOfARebootIsWhatTheHostSays(t *testing.T) {
	t.Parallel()
	for said, outcome := range map[string]remediations.CallOutcome{
		"rebooting " + bootID + "\n":   remediations.CallAccepted,
		"rebooting " + nextBoot + "\n": remediations.CallUnknown,
		"":                             remediations.CallUnknown,
		"!Failed to connect to bus: No such file or directory":                           remediations.CallRefused,
		"!drydock-host: refused: reboot=no in /usr/local/sbin/drydock-host":              remediations.CallRefused,
		"!drydock-host: booted since: the boot ID is " + nextBoot:                        remediations.CallRefused,
		"!sudo: a password is required":                                                  remediations.CallRefused,
		cannotResolve + "\nsudo: a password is required":                                 remediations.CallRefused,
		"!sudo: sorry, you must have a tty to run sudo":                                  remediations.CallRefused,
		"!sudo: /usr/local/sbin/drydock-host: command not found":                         remediations.CallRefused,
		"!sudo: /usr/bin/sudo must be owned by uid 0 and have the setuid bit set":        remediations.CallRefused,
		"!Sorry, user drydock is not allowed to execute 'x' as root on n1.":              remediations.CallRefused,
		"!drydock is not in the sudoers file.":                                           remediations.CallRefused,
		"!Failed to start transient service unit: Connection timed out":                  remediations.CallUnknown,
		cannotResolve + "\nFailed to start transient service unit: Connection timed out": remediations.CallUnknown,
		"!sudo: a message that nobody knows":                                             remediations.CallUnknown,
	} {
		s := newSite(t)
		s.answers = func(line string, ch ssh.Channel) (int, bool) {
			if strings.HasSuffix(line, " boot") {
				_, _ = ch.Write([]byte(bootID + " yes\n"))
				return 0, true
			}
			if complaint, failed := strings.CutPrefix(said, "!"); failed {
				_, _ = ch.Stderr().Write([]byte(complaint + "\n"))
				return 1, true
			}
			_, _ = ch.Write([]byte(said))
			return 0, true
		}
		got, err := s.client(t).Reboot(t.Context(), s.host, Clean, bootID, "n1-0-1", may)
		require.Equal(t, outcome, got, "%q: %v", said, err)
		require.Equal(t, got == remediations.CallAccepted, err == nil)
		require.Equal(t, got == remediations.CallUnknown, errors.Is(err, errUnsettled))
	}
}

// As shipped, a host allows no reboot.
func TestTheShippedScriptForbidsReboots(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "\nreboot=no\n"))
}

// From systemd 257 on an inhibitor also stops root's systemctl reboot, after the answer has left.
// The script checks that before, and names the program that blocks.
func TestAHostThatBlocksShutdownsIsNotRebooted(t *testing.T) {
	t.Parallel()
	const (
		delay = `"shutdown" "Unattended Upgrades Shutdown" "Stop ongoing upgrades" "delay" 0 812`
		sleep = `"sleep:idle" "a player" "no shutdown: of sound" "block" 1000 900`
		weak  = `"shutdown" "a desktop" "unsaved work" "block-weak" 1000 901`
		block = `"sleep:shutdown:idle" "nightly backup" "a dump is written" "block" 0 1000`
		odd   = `"sleep" "say \"hi\" \\" "\" \"block\" \"shutdown\"" "delay" 1000 902`
	)
	for name, test := range map[string]struct {
		by  []string
		who string
	}{
		"nobody":                       {},
		"a shutdown is only delayed":   {by: []string{delay}},
		"only sleep is blocked":        {by: []string{sleep}},
		"a block that root may pass":   {by: []string{weak}},
		"a shutdown is blocked":        {by: []string{block}, who: "nightly backup blocks the shutdown of this host: a dump is written"},
		"it is blocked beside others":  {by: []string{delay, sleep, odd, weak, block}, who: "nightly backup blocks the shutdown of this host: a dump is written"},
		"quotes in names are no names": {by: []string{odd}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := install(t)
			in.inhibited(t, test.by...)
			_, err := in.run(t, "", "reboot", bootID, "n1-0-1")
			if test.who == "" {
				require.NoError(t, err)
				require.NotEmpty(t, in.read(t, "reboots"))
				return
			}
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, "drydock-host: inhibited: "+test.who+"\n", string(exit.Stderr))
			require.Empty(t, in.read(t, "reboots"))
			_, err = in.run(t, "", "sysrq", bootID, "n1-0-1")
			require.NoError(t, err, "the last resort asks nobody")
			require.Equal(t, "b\n", in.read(t, "proc/sysrq-trigger"))
		})
	}
	t.Run("logind cannot be asked", func(t *testing.T) {
		t.Parallel()
		in := install(t)
		require.NoError(t, os.Remove(filepath.Join(in.dir, "inhibitors")))
		_, err := in.run(t, "", "reboot", bootID, "n1-0-1")
		require.NoError(t, err, "without logind there are no inhibitors")
		require.NotEmpty(t, in.read(t, "reboots"))
	})
	t.Run("Drydock says who blocks", func(t *testing.T) {
		t.Parallel()
		in := install(t)
		o, host := newSSHD(t, in)
		c, err := New(o)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		in.inhibited(t, block)
		outcome, err := c.Reboot(t.Context(), host, Clean, bootID, "n1-0-1", may)
		require.ErrorIs(t, err, errInhibited)
		require.ErrorContains(t, err, "nightly backup blocks the shutdown of this host")
		require.Equal(t, remediations.CallRefused, outcome)
		require.Empty(t, in.read(t, "reboots"))
		in.inhibited(t)
		outcome, err = c.Reboot(t.Context(), host, Clean, bootID, "n1-0-2", may)
		require.NoError(t, err, "the control: nobody blocks it any more")
		require.Equal(t, remediations.CallAccepted, outcome)
	})
}

// inhibited sets the host's inhibitors, in busctl's form.
func (in installed) inhibited(t testing.TB, by ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(in.dir, "inhibitors"), fmt.Appendf(nil, "a(ssssuu) %d %s\n", len(by), strings.Join(by, " ")), 0o644))
}

// inhibitorsAsked is the script's query to logind for programs that block a shutdown. It reads, and
// changes nothing.
const inhibitorsAsked = "--timeout=5 call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager ListInhibitors\n"
