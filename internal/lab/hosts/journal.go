package hosts

import (
	"context"
	"encoding/json"
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
	text, err := h.Run(ctx, "journalctl", "--output=json", "--all", "--no-pager", "_PID=1")
	if err != nil {
		return nil, err
	}
	var out []Restart
	var boot, by string // by is who will have started it
	for line := range strings.Lines(text) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, fmt.Errorf("reading the journal of host %s: %w: %s", h.Name, err, line)
		}
		switch {
		case e.ID == unitStarting && e.Unit == restartPrefix+unit:
			_, name, _ := strings.Cut(e.Message, attemptPrefix)
			by = ByDrydock(strings.TrimSuffix(name, "..."))
		case e.ID == restartScheduled && e.Unit == unit:
			by = BySystemd
		case e.ID == unitStarted && e.Unit == unit:
			at, err := strconv.ParseInt(e.At, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("reading the journal of host %s: %w", h.Name, err)
			}
			if by == "" {
				by = BySomebody
			}
			if e.Boot == boot { // else it is the first
				out = append(out, Restart{At: time.UnixMicro(at), By: by})
			}
			boot, by = e.Boot, ""
		}
	}
	return out, nil
}

// Attempts are the attempts of Drydock's that systemd on the host has taken, in their order, whatever came of them.
func (h *Host) Attempts(ctx context.Context, unit string) ([]string, error) {
	text, err := h.Run(ctx, "journalctl", "--output=json", "--all", "--no-pager", "_PID=1", "UNIT="+restartPrefix+unit, "MESSAGE_ID="+unitStarting)
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
