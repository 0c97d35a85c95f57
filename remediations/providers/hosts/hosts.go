package hosts

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/providers/hosts/settings"
)

const (
	defaultHold, minHold, maxHold = time.Minute, time.Second, 10 * time.Minute
	// defaultKeep is longer than the time between a Survey and its Act, so that both use one
	// connection.
	defaultKeep = 30 * time.Second
)

// Options configure a Client: the section providers.hosts, and two durations that are not in the
// configuration.
type Options struct {
	settings.Hosts
	// Hold is how long the transient unit of a restart exists, while systemd refuses another
	// restart of the same unit. It must be whole seconds. The default is 1 min.
	Hold time.Duration
	// Keep is how long an unused connection stays open. The default is 30 s.
	Keep time.Duration
}

// Client runs commands on hosts over SSH. It is safe for concurrent use. Commands for the same host
// run one after the other, over one connection.
type Client struct {
	o     Options
	units []string // those that steps may restart
	mu    sync.Mutex
	lines map[string]*line // by host name
}

// New checks the options, and reads the key file and the known_hosts file. It opens no connection.
func New(o Options) (*Client, error) {
	for _, d := range []struct {
		to   *time.Duration
		zero time.Duration
	}{{&o.Hold, defaultHold}, {&o.Keep, defaultKeep}} {
		if *d.to == 0 {
			*d.to = d.zero
		}
	}
	if o.Hold < minHold || o.Hold > maxHold || o.Hold%time.Second != 0 {
		return nil, fmt.Errorf("configuring hosts: the hold is %s; it must be whole seconds between %s and %s", text.Duration(o.Hold), text.Duration(minHold), text.Duration(maxHold))
	}
	units := o.Named()
	for _, unit := range units {
		if err := checkUnit(unit); err != nil {
			return nil, fmt.Errorf("configuring hosts: %w", err)
		}
	}
	if _, err := readIdentity(o.KeyFile, o.KnownHostsFile); err != nil {
		return nil, fmt.Errorf("configuring hosts: %w", err)
	}
	return &Client{o: o, units: units, lines: map[string]*line{}}, nil
}

// Status is the state of a unit, as systemd reports it.
type Status struct {
	// Loaded is true if the host has the unit, and the unit is not masked.
	Loaded, Active bool
	// State is systemd's own text, for example active/running or activating/auto-restart.
	State string
	// InvocationID changes at each start of the unit. It is empty if the unit was never started.
	InvocationID string
	// Restarting is the attempt that is restarting the unit, or did within Options.Hold. If another
	// program made the transient unit, it is the description of that unit.
	Restarting string
}

// Status reads the state of a unit on the host. If the unit does not exist or is masked, the error
// is ErrNoUnit.
func (c *Client) Status(ctx context.Context, h Host, unit string) (Status, error) {
	t := task{"reading the state of", h.Name, unit}
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
		err = kinded(ErrNoUnit, nil, "the host has no unit of that name, or the unit is masked (LoadState is %s); check the unit's name in providers.hosts, or unmask the unit", s.State)
	}
	if err != nil {
		return Status{}, t.fail(err)
	}
	return s, nil
}

// Evidence returns the last lines of the unit's journal: at most 4 KiB, and printable except for
// line ends.
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

// Close closes all connections that are not in use. Later calls open new ones.
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

// maxEvidence is in bytes.
const maxEvidence = 4 << 10

func readStatus(said string) (Status, error) {
	blocks := strings.Split(strings.TrimSpace(strings.ReplaceAll(said, "\r", "")), "\n\n")
	if len(blocks) != 2 {
		return Status{}, fmt.Errorf("systemctl reported %d units instead of 2: %q; check the systemctl on the host", len(blocks), clip(said))
	}
	unit, restart := properties(blocks[0]), properties(blocks[1])
	for _, p := range []map[string]string{unit, restart} {
		for _, key := range []string{"LoadState", "ActiveState", "SubState"} {
			if !stateWord.MatchString(p[key]) {
				return Status{}, fmt.Errorf("systemctl reported no valid %s of a unit: %q; check the systemctl on the host", key, clip(said))
			}
		}
	}
	s := Status{Loaded: unit["LoadState"] == "loaded", InvocationID: unit["InvocationID"]}
	if !invocation.MatchString(s.InvocationID) {
		return Status{}, fmt.Errorf("systemctl reported the invalid InvocationID %q; check the systemctl on the host", clip(s.InvocationID))
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
