package remediations

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
)

// Keys on the Node. AlertPrefix, RepairPrefix, HistoryKey and PhaseLabel are Drydock's own; the others are people's.
const (
	AlertPrefix   = "alert.drydock.dev/"
	RepairPrefix  = "repair.drydock.dev/"
	NodeRepairKey = RepairPrefix + "node"
	HistoryKey    = "drydock.dev/history"
	PhaseLabel    = "drydock.dev/phase"

	PauseKey      = "drydock.dev/pause"
	RequestKey    = "drydock.dev/request"
	ApproveKey    = "drydock.dev/approve"
	CancelKey     = "drydock.dev/cancel"
	ResetKey      = "drydock.dev/reset"
	BreakGlassKey = "drydock.dev/break-glass"
	ExcludeLabel  = "drydock.dev/exclude"
)

// VersionKey on the ledger's ConfigMap is the version of the Drydock that wrote it last.
const VersionKey = "drydock.dev/version"

// FieldManager is the name under which Drydock writes; managedFields carry it, which is how an undo knows its own work.
const FieldManager = "drydock"

// Bounds of what is kept on one Node.
const (
	MaxAlertsPerNode = 64
	MaxBytesPerNode  = 64 << 10
	// MaxAlertBytes is the alerts' part of it: the rest is room for the node's record and its leader's, the history, and
	// people's keys. An alert that was let in may get cancelledBytes longer.
	MaxAlertBytes  = MaxBytesPerNode - 2*MaxRecordBytes - maxHistoryBytes - maxObservedBytes - 1<<10 - MaxAlertsPerNode*cancelledBytes
	cancelledBytes = 64
)

// Owned says whether key is one that only Drydock may write.
func Owned(key string) bool {
	return strings.HasPrefix(key, AlertPrefix) || strings.HasPrefix(key, RepairPrefix) ||
		key == HistoryKey || key == PhaseLabel
}

// OwnBytes is what all of Drydock's keys take of a Node.
func OwnBytes(annotations map[string]string) int {
	size := 0
	for k, v := range annotations {
		if Owned(k) {
			size += len(k) + len(v)
		}
	}
	return size
}

// Relevant says whether key is any that Drydock reads or writes.
func Relevant(key string) bool { return Owned(key) || strings.HasPrefix(key, "drydock.dev/") }

// Excluded says whether a person took the node out of Drydock's hands: the label drydock.dev/exclude with any value but "false".
func Excluded(n *corev1.Node) bool {
	v, ok := n.Labels[ExcludeLabel]
	return ok && v != "false"
}

// Pause is what drydock.dev/pause says.
type Pause struct {
	// Until is when it ends by itself; zero: not before somebody removes it.
	Until time.Time
	Why   string
}

// ParsePause reads "true[ why]" or "<RFC 3339>[ why]". The error says how to write it; a caller that cannot read the
// value must hold, as the person who wrote it meant to.
func ParsePause(v string) (Pause, error) {
	head, why, _ := strings.Cut(strings.TrimSpace(v), " ")
	why = strings.TrimSpace(why)
	if head == "true" {
		return Pause{Why: why}, nil
	}
	until, err := time.Parse(time.RFC3339, head)
	if err != nil || !inYears(until) {
		return Pause{}, fmt.Errorf("%s=%q is not understood: write %q or an end, for example %q, each with a reason behind a space if you like",
			PauseKey, clip(v, 80), "true", "2026-01-31T18:00:00Z")
	}
	return Pause{Until: until, Why: why}, nil
}

// ParseReset reads drydock.dev/reset, whose only value is "true".
func ParseReset(v string) error {
	if v != "true" {
		return fmt.Errorf("%s=%q is not understood: the only value is \"true\"", ResetKey, clip(v, 80))
	}
	return nil
}

// IsID says whether v has the form of a repair's id.
func IsID(v string) bool { return len(v) == idLength && ofIDLetters(v) }

func ofIDLetters(v string) bool {
	return !strings.ContainsFunc(v, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// errEmptyName is for names that are no object's name at all.
var errEmptyName = errors.New("the name is empty")

// ValidNodeName says why name cannot be a Node's. A name from an alert is used only where it equals an existing
// object's; this check keeps nonsense out of look-ups, logs and messages before that.
func ValidNodeName(name string) error {
	return ValidName(name, 253, "lower-case letters, digits, '-' and '.'", "-.")
}

// ValidName allows letters, digits, and the characters of more.
func ValidName(name string, longest int, allowed, more string) error {
	if name == "" {
		return errEmptyName
	}
	if len(name) > longest {
		return fmt.Errorf("the name has %d characters, it may have at most %d", len(name), longest)
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(more, r) {
			return fmt.Errorf("the name has the character %s, it may have only %s", strconv.QuoteRune(r), allowed)
		}
	}
	return nil
}

// clip makes s fit for a message: one line of at most n bytes, of characters that show, and "…" where it was cut.
func clip(s string, n int) string { return text.Line(s, n) }
