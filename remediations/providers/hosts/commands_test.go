package hosts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations/providers/hosts/settings"
)

// closed are all commands, as a pattern of their argument vectors joined by new lines.
var closed = []*regexp.Regexp{
	regexp.MustCompile(`^/usr/bin/systemctl\nshow\n--property=LoadState,ActiveState,SubState,InvocationID,Description\n--\n(kubelet|containerd)\.service\ndrydock-restart-(kubelet|containerd)\.service$`),
	regexp.MustCompile(`^(sudo\n-n\n)?/usr/bin/journalctl\n--unit=(kubelet|containerd)\.service\n--lines=40\n--no-pager\n--output=short-iso$`),
	regexp.MustCompile(`^(sudo\n-n\n)?/usr/bin/systemd-run\n--unit=drydock-restart-(kubelet|containerd)\.service\n--description=drydock:[a-z0-9-]{1,64}\n--collect\n--no-block\n` +
		`--property=Type=oneshot\n--property=ExecStartPre=-/usr/bin/systemctl restart (kubelet|containerd)\.service\n/usr/bin/sleep\n([1-9][0-9]?|[1-5][0-9][0-9]|600)$`),
	regexp.MustCompile(`^(sudo\n-n\n)?/usr/local/sbin/drydock-host\n(boot|(reboot|sysrq)\n[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n[a-z0-9-]{1,64})$`),
	// The command that the script gives to systemd for that.
	regexp.MustCompile(`^/usr/bin/systemd-run\n--unit=drydock-reboot\n--description=drydock:[a-z0-9-]{1,64}\n--collect\n--no-block\n` +
		`--property=Type=oneshot\n--property=RemainAfterExit=yes\n--property=ExecStartPre=/usr/bin/sleep 1\n/usr/bin/systemctl\nreboot$`),
}

func commander(sudo bool) *Client {
	return &Client{o: Options{Hosts: settings.Hosts{Sudo: sudo}, Hold: time.Minute}, units: []string{"kubelet.service", "containerd.service"}}
}

// commandsFor returns the lines for those names; none if they are refused.
func commandsFor(t require.TestingT, sudo bool, unit, attempt string) (lines []string, vectors [][]string) {
	c := commander(sudo)
	for _, make := range []func() (command, error){
		func() (command, error) { return c.show(unit) },
		func() (command, error) { return c.journal(unit) },
		func() (command, error) { return c.restart(unit, attempt) },
		func() (command, error) { return c.boot(), nil },
		func() (command, error) { return c.reboot(Clean, bootID, attempt) },
		func() (command, error) { return c.reboot(Sysrq, bootID, attempt) },
		func() (command, error) { return c.reboot(Clean, unit, attempt) },
		func() (command, error) { return c.reboot(How(unit), bootID, attempt) },
	} {
		cmd, err := make()
		if err != nil {
			require.Nil(t, cmd)
			continue
		}
		line, err := cmd.line()
		require.NoError(t, err)
		lines, vectors = append(lines, line), append(vectors, cmd)
	}
	return lines, vectors
}

func requireClosed(t require.TestingT, vectors [][]string) {
	for _, v := range vectors {
		joined := strings.Join(v, "\n")
		require.True(t, slices.ContainsFunc(closed, func(r *regexp.Regexp) bool { return r.MatchString(joined) }), "%q", joined)
	}
}

// Whatever names come in, a host gets one command of the closed list or nothing (S1-14).
func FuzzCommandsAreOfTheClosedList(f *testing.F) {
	for _, unit := range []string{"kubelet.service", "containerd.service", "-H evil.service", "kubelet.service; reboot", "kubelet.service\nreboot", "$(id).service", "../x.service", "kubelet.service ", ""} {
		f.Add(unit, "n7q4k2-1-1", true)
		f.Add("kubelet.service", unit, false)
	}
	f.Fuzz(func(t *testing.T, unit, attempt string, sudo bool) {
		lines, vectors := commandsFor(t, sudo, unit, attempt)
		requireClosed(t, vectors)
		for i, line := range lines {
			require.Equal(t, vectors[i], split(t, line))
		}
	})
}

// split splits a line as a shell does: words of safe characters, and words in single quotes.
func split(t require.TestingT, line string) []string {
	var out []string
	for line != "" {
		word := regexp.MustCompile(`^(?:'([^']*)'|([A-Za-z0-9_@%+=:,./-]+))(?: |$)`).FindStringSubmatch(line)
		require.NotNil(t, word, line)
		out = append(out, word[1]+word[2])
		line = line[len(word[0]):]
	}
	return out
}

// A real shell splits a line into exactly the words that it was made of.
func TestAShellSeesTheWordsAndNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	show := filepath.Join(dir, "show")
	require.NoError(t, os.WriteFile(show, []byte("#!/bin/sh\nfor w; do printf '%s\\n' \"$w\"; done\n"), 0o755))
	for _, sudo := range []bool{true, false} {
		lines, vectors := commandsFor(t, sudo, "kubelet.service", "n7q4k2-1-1")
		require.Len(t, lines, 6)
		requireClosed(t, vectors)
		for i, line := range lines {
			for _, shell := range []string{"sh", "bash"} {
				got, err := exec.CommandContext(t.Context(), shell, "-c", show+" "+line).Output()
				require.NoError(t, err)
				require.Equal(t, strings.Join(vectors[i], "\n")+"\n", string(got))
			}
		}
	}
}

func TestAnArgumentThatAShellWouldSplitIsRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z '"$;&|<>()\x60\\*?\[\]#~!{}\n-]{0,12}`)).Draw(t, "word")
		line, err := command{"/usr/bin/true", word}.line()
		if err == nil {
			require.Equal(t, []string{"/usr/bin/true", word}, split(t, line))
		} else {
			require.False(t, safeArgument.MatchString(word))
		}
	})
	for _, word := range []string{"", "a'b", "a\nb", "$HOME", "a;b", "`id`", "a\\b", "\x00", "ü", "~", "*"} {
		_, err := command{word}.line()
		require.Error(t, err, word)
	}
}

func TestAUnitThatIsNotNamedHereReachesNoHost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.client(t)
	for _, unit := range []string{"sshd.service", "kubelet", "kubelet.socket", "kubelet.service -H x", "", strings.Repeat("a", 300) + ".service", "drydock-restart-kubelet.service"} {
		_, err := c.Status(t.Context(), s.host, unit)
		require.Error(t, err)
		_, err = c.Evidence(t.Context(), s.host, unit)
		require.Error(t, err)
		outcome, err := c.Restart(t.Context(), s.host, unit, "a-1-1", may)
		require.EqualValues(t, "refused", outcome)
		require.Error(t, err)
	}
	for _, attempt := range []string{"", "A", "a b", "a;b", "a'b", strings.Repeat("a", 65), "a\n"} {
		outcome, err := c.Restart(t.Context(), s.host, "kubelet.service", attempt, may)
		require.EqualValues(t, "refused", outcome)
		require.Error(t, err)
	}
	for says, h := range map[string]Host{
		"not the name of a Node": {Name: "x y", Addresses: []string{"127.0.0.1"}}, "no address": {Name: "cp-1"},
		`"localhost" is not an IP address`: {Name: "cp-1", Addresses: []string{"localhost"}}, "lo\" is not an IP address": {Name: "cp-1", Addresses: []string{"fe80::1%lo"}},
		"5 addresses": {Name: "cp-1", Addresses: []string{"127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"}},
	} {
		outcome, err := c.Restart(t.Context(), h, "kubelet.service", "a-1-1", may)
		require.EqualValues(t, "refused", outcome)
		require.ErrorContains(t, err, says)
	}
	require.Zero(t, s.accepted.Load())
}
