package hosts

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// systemd restarts the unit through a transient unit with this prefix. While that exists, systemd
// refuses a second one of the same name.
const restartPrefix = "drydock-restart-"

// descriptionPrefix precedes the attempt's name in the transient unit's description, which is in
// the host's journal.
const descriptionPrefix = "drydock:"

// command is separate words. doc.go lists all commands for a host.
type command []string

// One command reads the unit and the transient unit that restarts it, so the two states belong to
// the same moment.
func (c *Client) show(unit string) (command, error) {
	if err := c.allows(unit); err != nil {
		return nil, err
	}
	return command{"/usr/bin/systemctl", "show", "--property=LoadState,ActiveState,SubState,InvocationID,Description", "--", unit, restartPrefix + unit}, nil
}

func (c *Client) journal(unit string) (command, error) {
	if err := c.allows(unit); err != nil {
		return nil, err
	}
	return c.asRoot("/usr/bin/journalctl", "--unit="+unit, "--lines=40", "--no-pager", "--output=short-iso"), nil
}

// restart makes a transient unit, so the restart continues if the SSH connection ends. The
// transient unit exists for Options.Hold, even if the restart fails: the dash in ExecStartPre
// ignores a failure.
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

// helper is deploy/hosts/drydock-host. Only this script can reboot a host.
const helper = "/usr/local/sbin/drydock-host"

func (c *Client) boot() command { return c.asRoot(helper, "boot") }

// reboot does nothing on a host whose boot ID is no longer bootID.
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

// sshd passes each command to a shell, so the words have no characters that a shell interprets.
// Only the command in ExecStartPre has spaces, and is quoted.
var (
	safeArgument   = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)
	spacedArgument = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./ -]+$`)
)

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
