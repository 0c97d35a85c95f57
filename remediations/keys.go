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

// The keys of annotations and labels on a Node. Only Drydock writes keys with AlertPrefix and
// RepairPrefix, HistoryKey and PhaseLabel. People write the others.
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

// AttemptKey is the annotation with the id of the attempt, on an object that requests a step of
// another system.
const AttemptKey = "drydock.dev/attempt"

// VersionKey is the ledger's annotation with the version of Drydock that last wrote it.
const VersionKey = "drydock.dev/version"

// FieldManager is Drydock's name in managedFields. It shows which changes are Drydock's own when it
// undoes them.
const FieldManager = "drydock"

// The bounds of the data on one Node.
const (
	MaxAlertsPerNode = 64
	MaxBytesPerNode  = 64 << 10
	// The rest is for the records of the node and of its location, the history, and people's keys.
	// A stored alert grows by cancelledBytes when a person cancels its repair.
	MaxAlertBytes  = MaxBytesPerNode - 2*MaxRecordBytes - maxHistoryBytes - maxObservedBytes - 1<<10 - MaxAlertsPerNode*cancelledBytes
	cancelledBytes = 64
)

// Owned reports whether only Drydock may write the key.
func Owned(key string) bool {
	return strings.HasPrefix(key, AlertPrefix) || strings.HasPrefix(key, RepairPrefix) ||
		key == HistoryKey || key == PhaseLabel
}

// OwnBytes returns the size in bytes of the annotations that only Drydock may write.
func OwnBytes(annotations map[string]string) int {
	size := 0
	for k, v := range annotations {
		if Owned(k) {
			size += len(k) + len(v)
		}
	}
	return size
}

// Relevant reports whether the key is one of Drydock's, or one that people write for Drydock.
func Relevant(key string) bool { return Owned(key) || strings.HasPrefix(key, "drydock.dev/") }

// Excluded reports whether a person excluded the node from repairs: the label drydock.dev/exclude
// with any value but "false".
func Excluded(n *corev1.Node) bool {
	v, ok := n.Labels[ExcludeLabel]
	return ok && v != "false"
}

// Pause is the content of drydock.dev/pause.
type Pause struct {
	// Zero means that it lasts until a person removes it.
	Until time.Time
	Why   string
}

// ParsePause parses "true[ why]" or "<RFC 3339>[ why]". The error explains these forms. After an
// error the caller must hold repairs, because the person who wrote the value wanted a pause.
func ParsePause(v string) (Pause, error) {
	head, why, _ := strings.Cut(strings.TrimSpace(v), " ")
	why = strings.TrimSpace(why)
	if head == "true" {
		return Pause{Why: why}, nil
	}
	until, err := time.Parse(time.RFC3339, head)
	if err != nil || !inYears(until) {
		return Pause{}, fmt.Errorf("%s=%q is not understood: write %q, or an end time like %q; a reason may follow after a space",
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

var errEmptyName = errors.New("the name is empty")

// ValidNodeName returns an error if name cannot be the name of a Node. Each name from an alert must
// pass it before it is used in a look-up, a log or a message.
func ValidNodeName(name string) error {
	return ValidName(name, 253, "lower-case letters, digits, '-' and '.'", "-.")
}

// ValidName returns an error if name is empty, longer than longest, or has characters other than
// lower-case letters, digits and those in more. allowed describes them in the error.
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

func clip(s string, n int) string { return text.Line(s, n) }
