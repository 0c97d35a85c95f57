package hosts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Restart is one start of a unit, from the host's journal. The first start of a machine is not a
// restart.
type Restart struct {
	At time.Time
	// By is "drydock:" and the attempt's ID, from the description of the transient unit, or one of
	// the constants below.
	By string
}

const (
	BySystemd = "systemd" // the unit's Restart=
	ByUnknown = "unknown" // a request to systemd without a name
)

// ByDrydock returns the value of Restart.By for an attempt of Drydock.
func ByDrydock(attempt string) string { return attemptPrefix + attempt }

const (
	attemptPrefix = "drydock:"
	restartPrefix = "drydock-restart-" // the transient unit's name; the restarted unit's name follows
)

// Source: systemd's catalog (systemd/sd-messages.h).
const (
	unitStarting     = "7d4958e842da4a758f6c1cdc7b36dcc5"
	unitStarted      = "39f53479d3a045ac8e11786248231fbf"
	restartScheduled = "5eb03494b6584870a536b337290809b3"
)

type entry struct {
	At      string `json:"__REALTIME_TIMESTAMP"` // in microseconds
	Boot    string `json:"_BOOT_ID"`
	ID      string `json:"MESSAGE_ID"`
	Unit    string `json:"UNIT"`
	Message string `json:"MESSAGE"`
}

// Restarts returns the unit's restarts, in order.
func (h *Host) Restarts(ctx context.Context, unit string) ([]Restart, error) {
	text, err := h.journal(ctx, "--output=json", "--all", "--no-pager", "_PID=1")
	if err != nil {
		return nil, err
	}
	out, err := restartsIn(text, unit)
	if err != nil {
		return nil, fmt.Errorf("reading the journal of host %s: %w", h.Name, err)
	}
	return out, nil
}

// systemd's latest messages may not be in the journal before it is synced. On a host that is
// starting or shutting down, journald may not run.
func (h *Host) journal(ctx context.Context, args ...string) (string, error) {
	_, _ = h.Run(ctx, "journalctl", "--sync")
	return h.Run(ctx, append([]string{"journalctl"}, args...)...)
}

// A restart by Drydock may coincide with one by the unit's own Restart=. If systemd starts the unit
// once for both, the start counts as Drydock's. If it starts the unit twice in a row, only the
// second start is Drydock's.
func restartsIn(journal, unit string) ([]Restart, error) {
	var out []Restart
	var boot, asked string // asked is the attempt that requested the next start
	var scheduled bool     // whether Restart= requested the next start
	var both string        // the attempt that the last start counts for, if Restart= had requested that start, too
	for line := range strings.Lines(journal) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, fmt.Errorf("%w: %s", err, line)
		}
		switch {
		case e.ID == unitStarting && e.Unit == restartPrefix+unit:
			_, name, _ := strings.Cut(e.Message, attemptPrefix)
			asked = ByDrydock(strings.TrimSuffix(name, "..."))
		case e.ID == restartScheduled && e.Unit == unit:
			scheduled, both = true, ""
		case e.ID == unitStarted && e.Unit == unit:
			at, err := strconv.ParseInt(e.At, 10, 64)
			if err != nil {
				return nil, err
			}
			r := Restart{At: time.UnixMicro(at), By: ByUnknown}
			switch {
			case asked != "":
				r.By = asked
			case scheduled:
				r.By = BySystemd
			case both != "":
				out[len(out)-1].By, r.By = BySystemd, both
			}
			if e.Boot == boot { // otherwise it is the first start of this boot
				out = append(out, r)
			}
			both = ""
			if asked != "" && scheduled && e.Boot == boot {
				both = asked
			}
			boot, asked, scheduled = e.Boot, "", false
		}
	}
	return out, nil
}

// Attempts returns the attempts of Drydock that systemd on the host accepted, in order, whatever
// their results.
func (h *Host) Attempts(ctx context.Context, unit string) ([]string, error) {
	return h.taken(ctx, restartPrefix+unit)
}

// AwaitAttempt waits until systemd on the host has accepted more than before attempts of Drydock.
// If journalctl ends by itself, it starts again and reads everything from the beginning.
func (h *Host) AwaitAttempt(ctx context.Context, unit string, before int) error {
	for {
		err := h.follow(ctx, unit, before)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("following the journal of host %s: %w", h.Name, errors.Join(err, ctx.Err()))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (h *Host) follow(ctx context.Context, unit string, before int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd, err := h.command(ctx, append([]string{"journalctl", "--follow", "--lines=all"}, takenIn(restartPrefix+unit)...)...)
	if err != nil {
		return err
	}
	var faults bytes.Buffer
	cmd.Stderr = &faults
	journal, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(journal)
	taken := 0
	for taken <= before && lines.Scan() {
		taken++
	}
	cancel()
	_ = journal.Close() // this ends journalctl
	ended := cmd.Wait()
	if taken > before {
		return nil
	}
	return fmt.Errorf("journalctl has ended: %w", errors.Join(lines.Err(), ended, errors.New(faults.String())))
}

// RebootAttempts returns the attempts of Drydock that made the host reboot.
func (h *Host) RebootAttempts(ctx context.Context) ([]string, error) {
	return h.taken(ctx, "drydock-reboot.service")
}

func (h *Host) taken(ctx context.Context, unit string) ([]string, error) {
	text, err := h.journal(ctx, takenIn(unit)...)
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(text) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, fmt.Errorf("reading the journal of host %s: %w: %s", h.Name, err, line)
		}
		_, name, _ := strings.Cut(e.Message, attemptPrefix)
		out = append(out, strings.TrimSuffix(name, "..."))
	}
	return out, nil
}

func takenIn(unit string) []string {
	return []string{"--output=json", "--all", "--no-pager", "_PID=1", "UNIT=" + unit, "MESSAGE_ID=" + unitStarting}
}

// Boots returns the IDs of the host's boots from its journal. The current boot is the last one.
func (h *Host) Boots(ctx context.Context) ([]string, error) {
	text, err := h.journal(ctx, "--list-boots", "--no-pager", "--quiet")
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			return nil, fmt.Errorf("reading the boots of host %s: %q", h.Name, line)
		}
		out = append(out, fields[1])
	}
	return out, nil
}
