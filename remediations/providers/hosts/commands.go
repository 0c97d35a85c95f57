package hosts

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// restartPrefix is the beginning of a transient unit's name; the name of a real unit follows.
// systemd restarts the real unit through this transient unit. While the transient unit exists,
// systemd refuses a second one of the same name.
const restartPrefix = "drydock-restart-"

// descriptionPrefix is the beginning of the transient unit's description; the attempt's name
// follows. The description appears in the host's journal.
const descriptionPrefix = "drydock:"

// command is one command for a host, as separate words. doc.go lists all commands that Drydock
// uses.
type command []string

// show returns the command that reads the state of a unit, and of the transient unit that restarts
// it. One command reads both, so the two states belong to the same moment.
func (c *Client) show(unit string) (command, error) {
	if err := c.allows(unit); err != nil {
		return nil, err
	}
	return command{"/usr/bin/systemctl", "show", "--property=LoadState,ActiveState,SubState,InvocationID,Description", "--", unit, restartPrefix + unit}, nil
}

// journal returns the command that reads the last 40 lines of a unit's journal.
func (c *Client) journal(unit string) (command, error) {
	if err := c.allows(unit); err != nil {
		return nil, err
	}
	return c.asRoot("/usr/bin/journalctl", "--unit="+unit, "--lines=40", "--no-pager", "--output=short-iso"), nil
}

// restart returns the command that makes a transient unit, which restarts the unit. The restart
// continues if the SSH connection ends. The transient unit exists for Options.Hold, even if the
// restart fails: the dash in ExecStartPre ignores a failure.
func (c *Client) restart(unit, attempt string) (command, error) {
	if err := c.allows(unit); err != nil {
		return nil, err
	}
	if err := checkAttempt(attempt); err != nil {
		return nil, err
	}
	return c.asRoot("/usr/bin/systemd-run", "--unit="+restartPrefix+unit, "--description="+descriptionPrefix+attempt,
		"--collect", "--no-block", "--property=Type=oneshot", "--property=ExecStartPre=-/usr/bin/systemctl restart "+unit,
		"/usr/bin/sleep", strconv.Itoa(int(c.o.Hold/time.Second))), nil
}

// helper is the path of the script drydock-host on a host (deploy/hosts/drydock-host). Only this
// script can reboot a host.
const helper = "/usr/local/sbin/drydock-host"

// boot returns the command that reads the host's boot ID, and which kinds of reboot the host
// allows.
func (c *Client) boot() command { return c.asRoot(helper, "boot") }

// reboot returns the command that reboots the host, if the host's boot ID still equals bootID.
func (c *Client) reboot(how How, bootID, attempt string) (command, error) {
	if how != Clean && how != Sysrq {
		return nil, fmt.Errorf("%q is not a way to reboot", clip(string(how)))
	}
	if !bootName.MatchString(bootID) {
		return nil, fmt.Errorf("%q is not a boot ID", clip(bootID))
	}
	if err := checkAttempt(attempt); err != nil {
		return nil, err
	}
	return c.asRoot(helper, string(how), bootID, attempt), nil
}

func (c *Client) asRoot(words ...string) command {
	if c.o.Sudo {
		return append(command{"sudo", "-n"}, words...)
	}
	return words
}

// safeArgument matches a word without characters that a shell interprets. spacedArgument also
// allows spaces, and command.line puts such a word in quotes. sshd passes each command to a shell.
// One word has spaces: the command in ExecStartPre.
var (
	safeArgument   = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)
	spacedArgument = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./ -]+$`)
)

// line returns the command as one line for sshd, with quotes where a word has spaces.
func (c command) line() (string, error) {
	words := make([]string, len(c))
	for i, w := range c {
		switch {
		case safeArgument.MatchString(w):
			words[i] = w
		case spacedArgument.MatchString(w):
			words[i] = "'" + w + "'"
		default:
			return "", fmt.Errorf("the word %q is not allowed in an SSH command", clip(w))
		}
	}
	return strings.Join(words, " "), nil
}
