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

// Keys on the Node. Only Drydock writes AlertPrefix, RepairPrefix, HistoryKey and PhaseLabel;
// people write the others.
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

// AttemptKey, on an object whose annotations are a request of Drydock's, is the attempt that made
// the request. That object may be a Node.
const AttemptKey = "drydock.dev/attempt"

// VersionKey, on the ledger's ConfigMap, is the version of the Drydock that wrote the ConfigMap
// last.
const VersionKey = "drydock.dev/version"

// FieldManager is the field manager of Drydock's writes. An undo finds Drydock's own changes by
// this name in managedFields.
const FieldManager = "drydock"

// Bounds of what Drydock keeps on one Node.
const (
	MaxAlertsPerNode = 64
	MaxBytesPerNode  = 64 << 10
	// MaxAlertBytes is the part for alerts. The rest is room for the node's record, its leader's
	// record, the history, and people's keys. An accepted alert may later grow by cancelledBytes.
	MaxAlertBytes  = MaxBytesPerNode - 2*MaxRecordBytes - maxHistoryBytes - maxObservedBytes - 1<<10 - MaxAlertsPerNode*cancelledBytes
	cancelledBytes = 64
)

// Owned reports whether only Drydock may write the key.
func Owned(key string) bool {
	return strings.HasPrefix(key, AlertPrefix) || strings.HasPrefix(key, RepairPrefix) ||
		key == HistoryKey || key == PhaseLabel
}

// OwnBytes returns how many bytes all of Drydock's keys take on a Node.
func OwnBytes(annotations map[string]string) int {
	size := 0
	for k, v := range annotations {
		if Owned(k) {
			size += len(k) + len(v)
		}
	}
	return size
}

// Relevant reports whether Drydock reads or writes the key.
func Relevant(key string) bool { return Owned(key) || strings.HasPrefix(key, "drydock.dev/") }

// Excluded reports whether a person excluded the node from repairs: it has the label
// drydock.dev/exclude with any value but "false".
func Excluded(n *corev1.Node) bool {
	v, ok := n.Labels[ExcludeLabel]
	return ok && v != "false"
}

// Pause is the content of drydock.dev/pause.
type Pause struct {
	// Until is when the pause ends by itself; zero: it ends when a person removes it.
	Until time.Time
	Why   string
}

// ParsePause parses "true[ why]" or "<RFC 3339>[ why]". The error explains the form. A caller that
// gets an error must hold repairs, because the person who wrote the value wanted a pause.
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

// ParseReset checks drydock.dev/reset. Its only value is "true".
func ParseReset(v string) error {
	if v != "true" {
		return fmt.Errorf("%s=%q is not understood: the only value is \"true\"", ResetKey, clip(v, 80))
	}
	return nil
}

// IsID reports whether v has the form of a repair's id.
func IsID(v string) bool { return len(v) == idLength && ofIDLetters(v) }

func ofIDLetters(v string) bool {
	return !strings.ContainsFunc(v, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// errEmptyName is the error for an empty name.
var errEmptyName = errors.New("the name is empty")

// ValidNodeName returns why name cannot be the name of a Node. A name from an alert is used only if
// it equals the name of an existing object. This check runs before, so that invalid names do not
// reach look-ups, logs and messages.
func ValidNodeName(name string) error {
	return ValidName(name, 253, "lower-case letters, digits, '-' and '.'", "-.")
}

// ValidName accepts letters, digits, and the characters of more.
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

// clip shortens s for a message: one line of at most n bytes, of printable characters, with "…"
// where text was cut.
func clip(s string, n int) string { return text.Line(s, n) }
