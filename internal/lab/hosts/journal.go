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

// Restart is one start of a unit after the first since the machine was turned on, as the host's own journal has it.
type Restart struct {
	At time.Time
	// By is "drydock:" and the attempt, as the transient unit's description names it, or one of the following.
	By string
}

const (
	BySystemd  = "systemd"  // the unit's Restart=
	BySomebody = "somebody" // whoever asked systemd, and left no name
)

// ByDrydock is Restart.By of an attempt.
func ByDrydock(attempt string) string { return attemptPrefix + attempt }

const (
	attemptPrefix = "drydock:"
	restartPrefix = "drydock-restart-" // and the unit's name: the transient unit's
)

// What systemd says, by the IDs of its catalog (systemd/sd-messages.h).
const (
	unitStarting     = "7d4958e842da4a758f6c1cdc7b36dcc5"
	unitStarted      = "39f53479d3a045ac8e11786248231fbf"
	restartScheduled = "5eb03494b6584870a536b337290809b3"
)

// entry is a line of systemd's own.
type entry struct {
	At      string `json:"__REALTIME_TIMESTAMP"` // in microseconds
	Boot    string `json:"_BOOT_ID"`
	ID      string `json:"MESSAGE_ID"`
	Unit    string `json:"UNIT"`
	Message string `json:"MESSAGE"`
}

// Restarts are the unit's, in their order.
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

// journal is what journalctl prints, when the journal has all that the host has said by now: what systemd has just done may still be on its
// way there. On a host that comes up or goes down nobody may be there to write it.
func (h *Host) journal(ctx context.Context, args ...string) (string, error) {
	_, _ = h.Run(ctx, "journalctl", "--sync")
	return h.Run(ctx, append([]string{"journalctl"}, args...)...)
}

// restartsIn are the unit's restarts in a journal as JSON.
//
// A restart of Drydock's may meet the unit's own Restart= in the same moment. Then systemd starts the unit once for both,
// which counts as Drydock's, or a second time right away, and only the second one is Drydock's.
func restartsIn(journal, unit string) ([]Restart, error) {
	var out []Restart
	var boot, asked string // asked is the attempt that asks for the next start
	var scheduled bool     // Restart= asks for it
	var both string        // the attempt that counts for the start before, for which Restart= had asked as well
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
			r := Restart{At: time.UnixMicro(at), By: BySomebody}
			switch {
			case asked != "":
				r.By = asked
			case scheduled:
				r.By = BySystemd
			case both != "":
				out[len(out)-1].By, r.By = BySystemd, both
			}
			if e.Boot == boot { // else it is the first
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

// Attempts are the attempts of Drydock's that systemd on the host has taken, in their order, whatever came of them.
func (h *Host) Attempts(ctx context.Context, unit string) ([]string, error) {
	return h.taken(ctx, restartPrefix+unit)
}

// AwaitAttempt returns as soon as systemd on the host has taken more than so many attempts of Drydock's: it follows the journal. A journalctl
// that ends by itself is started again, and reads all from the beginning.
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
	_ = journal.Close() // with which journalctl ends
	ended := cmd.Wait()
	if taken > before {
		return nil
	}
	return fmt.Errorf("journalctl has ended: %w", errors.Join(lines.Err(), ended, errors.New(faults.String())))
}

// RebootAttempts are those by which Drydock had the host rebooted.
func (h *Host) RebootAttempts(ctx context.Context) ([]string, error) {
	return h.taken(ctx, "drydock-reboot.service")
}

// taken are the attempts in whose name systemd has started that transient unit.
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

// takenIn has journalctl print a line for each start of that transient unit.
func takenIn(unit string) []string {
	return []string{"--output=json", "--all", "--no-pager", "_PID=1", "UNIT=" + unit, "MESSAGE_ID=" + unitStarting}
}

// Boots are the IDs of the host's boots, by its journal, the last one now.
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
