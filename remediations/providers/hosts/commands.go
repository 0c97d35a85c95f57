package hosts

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// restartPrefix and a unit's name are the name of the transient unit that restarts it: while there is one, systemd refuses
// another.
const restartPrefix = "drydock-restart-"

// descriptionPrefix and an attempt are that unit's description, which the host's journal shows.
const descriptionPrefix = "drydock:"

// command is one of the closed list, word by word.
type command []string

// show asks about a unit and about the one that restarts it, at one moment.
func (c *Client) show(unit string) (command, error) {
	if err := c.allows(unit); err != nil {
		return nil, err
	}
	return command{"/usr/bin/systemctl", "show", "--property=LoadState,ActiveState,SubState,InvocationID,Description", "--", unit, restartPrefix + unit}, nil
}

// journal asks for a unit's last lines.
func (c *Client) journal(unit string) (command, error) {
	if err := c.allows(unit); err != nil {
		return nil, err
	}
	return c.asRoot("/usr/bin/journalctl", "--unit="+unit, "--lines=40", "--no-pager", "--output=short-iso"), nil
}

// restart has systemd restart a unit by a transient one, that stays for the hold whatever becomes of the restart (which is
// what the dash before it says) and whoever asked for it, and goes by itself.
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

// helper is where deploy/hosts/drydock-host is on a host. Only that script knows how to reboot one.
const helper = "/usr/local/sbin/drydock-host"

// boot asks for the host's boot ID, and for how Drydock may reboot it.
func (c *Client) boot() command { return c.asRoot(helper, "boot") }

// reboot reboots the host if its boot ID is still that one.
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

// safeWord holds nothing that a shell would take apart, or take for anything but itself. spacedWord does but for spaces: sshd
// hands every line to a shell, and systemd-run takes what a unit runs first in one word only.
var (
	safeWord   = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)
	spacedWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./ -]+$`)
)

// line is the command as sshd gets it.
func (c command) line() (string, error) {
	words := make([]string, len(c))
	for i, w := range c {
		switch {
		case safeWord.MatchString(w):
			words[i] = w
		case spacedWord.MatchString(w):
			words[i] = "'" + w + "'"
		default:
			return "", fmt.Errorf("the word %q may not stand in a command", clip(w))
		}
	}
	return strings.Join(words, " "), nil
}
