package hosts

import (
	"context"
	"drydock.dev/drydock/internal/text"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	defaultPort    = 22
	defaultTimeout = 30 * time.Second
	// defaultHold is how long a host refuses another restart of a unit.
	defaultHold, minHold, maxHold = time.Minute, time.Second, 10 * time.Minute
	// defaultKeep is longer than it takes from a survey to the call.
	defaultKeep = 30 * time.Second
)

// Options say how to log in to hosts, and which units Drydock may restart.
type Options struct {
	// User is the login name. Required.
	User string
	// Port is sshd's. Zero: 22.
	Port int
	// KeyFile holds User's private key, KnownHostsFile the keys of hosts and of authorities that
	// sign host keys. Both are read again for each command, so a new file needs no restart.
	// Required.
	KeyFile, KnownHostsFile string
	// Sudo: User is not root, and commands that need root use `sudo -n`.
	Sudo bool
	// Units are the units that steps may name. Required.
	Units []string
	// Timeout bounds one command, with the connection. Zero: 30 s.
	Timeout time.Duration
	// Hold is for how long a host refuses another restart of a unit. Whole seconds; zero: 1 min.
	Hold time.Duration
	// Keep is how long an unused connection stays open. Zero: 30 s.
	Keep time.Duration
}

// Client reads the state of units on hosts, and restarts them. Its methods may be called at the
// same time; the commands for one host run one after the other over one connection.
type Client struct {
	o     Options
	mu    sync.Mutex
	lines map[string]*line // by the host's name
}

// New checks the options and reads both files. It opens no connection. The error names the option
// that is missing or wrong.
func New(o Options) (*Client, error) {
	if o.Port == 0 {
		o.Port = defaultPort
	}
	for _, d := range []struct {
		to   *time.Duration
		zero time.Duration
	}{{&o.Timeout, defaultTimeout}, {&o.Hold, defaultHold}, {&o.Keep, defaultKeep}} {
		if *d.to == 0 {
			*d.to = d.zero
		}
	}
	switch {
	case !userName.MatchString(o.User):
		return nil, fmt.Errorf("configuring hosts: the user %q is not a name of a user, for example drydock", clip(o.User))
	case o.Port < 1 || o.Port > 65535:
		return nil, fmt.Errorf("configuring hosts: %d is not a port", o.Port)
	case o.Timeout < 0 || o.Keep < 0:
		return nil, errors.New("configuring hosts: a time limit is negative")
	case o.Hold < minHold || o.Hold > maxHold || o.Hold%time.Second != 0:
		return nil, fmt.Errorf("configuring hosts: a hold of %s is not one of whole seconds between %s and %s", text.Duration(o.Hold), text.Duration(minHold), text.Duration(maxHold))
	case len(o.Units) == 0:
		return nil, errors.New("configuring hosts: no unit may be restarted; name at least one")
	}
	for _, unit := range o.Units {
		if err := checkUnit(unit); err != nil {
			return nil, fmt.Errorf("configuring hosts: %w", err)
		}
	}
	o.Units = slices.Clone(o.Units)
	if _, err := readIdentity(o.KeyFile, o.KnownHostsFile); err != nil {
		return nil, fmt.Errorf("configuring hosts: %w", err)
	}
	return &Client{o: o, lines: map[string]*line{}}, nil
}

// Status is systemd's report on a unit.
type Status struct {
	// Loaded: the host has such a unit, and it is not masked. Active: it runs.
	Loaded, Active bool
	// State is systemd's own text, for example active/running or activating/auto-restart.
	State string
	// InvocationID changes each time the unit is started; empty: it was never started.
	InvocationID string
	// Restarting is the attempt that restarted the unit within the last hold, or is restarting it;
	// empty: there is none. If a transient unit of that name is not from Drydock, Restarting is its
	// description.
	Restarting string
}

// Status reads systemd's report on a unit. If the host has no such unit, the error is ErrNoUnit.
func (c *Client) Status(ctx context.Context, h Host, unit string) (Status, error) {
	t := task{"looking at", h.Name, unit}
	show, err := c.show(unit)
	if err != nil {
		return Status{}, t.fail(err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	a, err := c.run(ctx, h, show, nil)
	if err == nil {
		err = a.failure()
	}
	if err != nil {
		return Status{}, t.fail(err)
	}
	s, err := readStatus(a.stdout.String())
	if err == nil && !s.Loaded {
		err = kinded(ErrNoUnit, nil, "the host has no unit of that name, or it is masked (LoadState is %s); check the unit's name in providers.hosts, or unmask it", s.State)
	}
	if err != nil {
		return Status{}, t.fail(err)
	}
	return s, nil
}

// Evidence returns the end of the unit's journal: at most 4 KiB of whole characters, without
// control characters other than line ends.
func (c *Client) Evidence(ctx context.Context, h Host, unit string) (string, error) {
	t := task{"reading the journal of", h.Name, unit}
	journal, err := c.journal(unit)
	if err != nil {
		return "", t.fail(err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	a, err := c.run(ctx, h, journal, nil)
	if err == nil {
		err = a.failure()
	}
	if err != nil {
		return "", t.fail(err)
	}
	return lastLines(a.stdout.String(), maxEvidence), nil
}

// Close closes all connections that are not in use. The client can still be used.
func (c *Client) Close() {
	c.mu.Lock()
	lines := make([]*line, 0, len(c.lines))
	for _, l := range c.lines {
		lines = append(lines, l)
	}
	c.mu.Unlock()
	for _, l := range lines {
		l.hangUpIfIdle()
	}
}

// maxEvidence bounds what is kept of a unit's journal.
const maxEvidence = 4 << 10

// readStatus parses the answer of systemctl show about a unit and about the unit that restarts it,
// in this order.
func readStatus(said string) (Status, error) {
	blocks := strings.Split(strings.TrimSpace(strings.ReplaceAll(said, "\r", "")), "\n\n")
	if len(blocks) != 2 {
		return Status{}, fmt.Errorf("systemctl said something about %d units where it was asked about 2: %q; check what answers there", len(blocks), clip(said))
	}
	unit, restart := properties(blocks[0]), properties(blocks[1])
	for _, p := range []map[string]string{unit, restart} {
		for _, key := range []string{"LoadState", "ActiveState", "SubState"} {
			if !stateWord.MatchString(p[key]) {
				return Status{}, fmt.Errorf("systemctl did not say a unit's %s: %q; check what answers there", key, clip(said))
			}
		}
	}
	s := Status{Loaded: unit["LoadState"] == "loaded", InvocationID: unit["InvocationID"]}
	if !invocation.MatchString(s.InvocationID) {
		return Status{}, fmt.Errorf("systemctl gave %q for an InvocationID; check what answers there", clip(s.InvocationID))
	}
	s.State = unit["ActiveState"] + "/" + unit["SubState"]
	s.Active = s.Loaded && (unit["ActiveState"] == "active" || unit["ActiveState"] == "reloading")
	if !s.Loaded {
		s.State = unit["LoadState"]
	}
	if restart["LoadState"] != "not-found" {
		s.Restarting = clip(strings.TrimPrefix(restart["Description"], descriptionPrefix))
		if s.Restarting == "" {
			s.Restarting = "unknown"
		}
	}
	return s, nil
}

func properties(block string) map[string]string {
	out := map[string]string{}
	for l := range strings.Lines(block) {
		if key, value, ok := strings.Cut(strings.TrimSpace(l), "="); ok {
			out[key] = value
		}
	}
	return out
}
