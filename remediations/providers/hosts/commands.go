package hosts

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// restartPrefix and a unit's name form the name of the transient unit that restarts it: while that
// exists, systemd refuses another one.
const restartPrefix = "drydock-restart-"

// descriptionPrefix and an attempt form that unit's description, which the host's journal shows.
const descriptionPrefix = "drydock:"

// command is one command of the closed list, word by word.
type command []string

// show reads a unit and the unit that restarts it, at one moment.
func (c *Client) show(unit string) (command, error) {
	if err := c.allows(unit); err != nil {
		return nil, err
	}
	return command{"/usr/bin/systemctl", "show", "--property=LoadState,ActiveState,SubState,InvocationID,Description", "--", unit, restartPrefix + unit}, nil
}

// journal reads a unit's last lines.
func (c *Client) journal(unit string) (command, error) {
	if err := c.allows(unit); err != nil {
		return nil, err
	}
	return c.asRoot("/usr/bin/journalctl", "--unit="+unit, "--lines=40", "--no-pager", "--output=short-iso"), nil
}

// restart makes systemd restart a unit through a transient unit. The transient unit stays for the
// hold and then ends by itself, whether the restart succeeds (the dash before it ignores a failure)
// and whether its client is still there.
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

// helper is the path of deploy/hosts/drydock-host on a host. Only that script can reboot a host.
const helper = "/usr/local/sbin/drydock-host"

// boot reads the host's boot ID, and how Drydock may reboot it.
func (c *Client) boot() command { return c.asRoot(helper, "boot") }

// reboot reboots the host if its boot ID is still bootID.
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

// safeArgument contains nothing that a shell would interpret. spacedArgument allows spaces as well:
// sshd hands every line to a shell, and systemd-run takes the command that a unit runs first in one
// word only.
var (
	safeArgument   = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)
	spacedArgument = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./ -]+$`)
)

// line returns the command line for sshd.
func (c command) line() (string, error) {
	words := make([]string, len(c))
	for i, w := range c {
		switch {
		case safeArgument.MatchString(w):
			words[i] = w
		case spacedArgument.MatchString(w):
			words[i] = "'" + w + "'"
		default:
			return "", fmt.Errorf("the word %q may not stand in a command", clip(w))
		}
	}
	return strings.Join(words, " "), nil
}
