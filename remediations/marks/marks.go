// Package marks recognizes the marks that people and other systems set on a Node because they work
// on it: taints, labels, annotations and conditions. It gets the Node from its caller, and reads
// nothing itself.
package marks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
)

// Kind is what a mark is. The value is its key in the configuration's holdWhen.
type Kind string

const (
	Taint      Kind = "taints"
	Label      Kind = "labels"
	Annotation Kind = "annotations"
	Condition  Kind = "conditions"
)

// Kinds lists every Kind.
var Kinds = []Kind{Taint, Label, Annotation, Condition}

func (k Kind) noun() string {
	return map[Kind]string{Taint: "taint", Label: "label", Annotation: "annotation", Condition: "condition"}[k]
}

// Mark describes a taint, label, annotation or condition that a person or another system, its
// owner, sets on a Node. While it is there, its owner works on the Node, or wants other systems not
// to change it.
type Mark struct {
	Kind Kind
	// The key of the taint, label or annotation, or the type of the condition.
	Key string
	// The values that hold repairs, or the statuses of a condition. Nil means every value except
	// "false", and for a condition only "True".
	Values []string
	// How long a mark with a date holds repairs, from that date. Zero means until its owner removes
	// it.
	BelievedFor time.Duration
	// The owner of the mark, and what the mark says about the node, as parts of a message.
	By, Means string
	// The owner's public code or documentation that names the key. Only shipped marks have one.
	Source string
	// A reboot by Drydock may also cause the mark. So it does not hold a repair if it appeared
	// after the last step of that repair.
	echo bool
}

// List has the marks that hold every repair of a node. The first one that a Node has counts. Nil
// means the marks that Drydock ships.
type List []Mark

// Own reports which taints, annotations and conditions of a Node Drydock set itself, so that they
// do not count as marks.
type Own interface {
	OwnTaint(t corev1.Taint) bool
	Announced(n *corev1.Node, key string) bool
	OwnCondition(c corev1.NodeCondition) bool
	// Caused reports whether the condition appeared after the last step of the node's repair.
	Caused(c corev1.NodeCondition) bool
}

// Keys returns the keys of the list's marks of one kind.
func (l List) Keys(kind Kind) (keys []string) {
	for _, mark := range l.OrShipped() {
		if mark.Kind == kind {
			keys = append(keys, mark.Key)
		}
	}
	return keys
}

// OrShipped returns the list itself, or the shipped marks if it is nil.
func (l List) OrShipped() List {
	if l == nil {
		return shipped
	}
	return l
}

// Claim says whether marks on a Node hold its repairs now.
type Claim struct {
	// Which mark holds repairs of the Node. Empty if no mark does.
	Why string
	// When the mark no longer holds repairs, because its BelievedFor ends. Zero means when its
	// owner removes it.
	Until time.Time
	// The message about marks that no longer hold repairs, because their BelievedFor has ended.
	Overdue string
}

// Leaving returns which mark on the Node holds its repairs, or "".
func (l List) Leaving(n *corev1.Node, own Own, now time.Time) string { return l.Claim(n, own, now).Why }

// Claim returns whether marks on the Node hold its repairs, apart from those that Drydock set
// itself, according to own.
func (l List) Claim(n *corev1.Node, own Own, now time.Time) Claim {
	if n.DeletionTimestamp != nil {
		return Claim{Why: "the Node is being deleted"}
	}
	var overdue []string
	for _, mark := range l.OrShipped() {
		shown, since, ok := mark.on(n, own)
		if !ok {
			continue
		}
		// A date before the Node's creation or in the future does not count: a clock was wrong, or
		// the value is not meant as a date.
		dated := !since.IsZero() && !since.Before(n.CreationTimestamp.Time) && !since.After(now)
		says := fmt.Sprintf("%s %s set by %s: %s", mark.Kind.noun(), shown, mark.By, mark.Means)
		at, until := since.UTC().Format(time.RFC3339), since.UTC().Add(mark.BelievedFor)
		switch {
		case !dated:
			return Claim{Why: says}
		case mark.BelievedFor == 0:
			return Claim{Why: fmt.Sprintf("%s (since %s)", says, at)}
		case now.Before(until):
			return Claim{Why: fmt.Sprintf("%s (since %s, believedFor %s)", says, at, text.Age(mark.BelievedFor)), Until: until}
		}
		overdue = append(overdue, fmt.Sprintf("%s (since %s, longer than believedFor %s; the mark was not removed)", says, at, text.Age(mark.BelievedFor)))
	}
	return Claim{Overdue: strings.Join(overdue, "; ")}
}

// The method on returns the mark's text for messages, and its date or zero. ok is false if the Node
// does not have the mark, or if Drydock itself set or caused it.
func (m Mark) on(n *corev1.Node, own Own) (shown string, since time.Time, ok bool) {
	switch m.Kind {
	case Taint:
		for _, t := range n.Spec.Taints {
			if t.Key != m.Key || !m.counts(t.Value) || own.OwnTaint(t) {
				continue
			}
			if since = date(t.Value); since.IsZero() && t.TimeAdded != nil {
				since = t.TimeAdded.Time
			}
			return m.show(t.Value), since, true
		}
	case Label:
		return m.in(n.Labels)
	case Annotation:
		if !own.Announced(n, m.Key) {
			return m.in(n.Annotations)
		}
	case Condition:
		for _, c := range n.Status.Conditions {
			if string(c.Type) == m.Key && m.counts(string(c.Status)) && !own.OwnCondition(c) && (!m.echo || !own.Caused(c)) {
				return fmt.Sprintf("%s=%s", c.Type, c.Status), c.LastTransitionTime.Time, true
			}
		}
	}
	return "", time.Time{}, false
}

func (m Mark) in(marks map[string]string) (shown string, since time.Time, ok bool) {
	v, ok := marks[m.Key]
	if !ok || !m.counts(v) {
		return "", time.Time{}, false
	}
	return m.show(v), date(v), true
}

func (m Mark) show(value string) string {
	if m.Values == nil {
		return m.Key
	}
	return m.Key + "=" + text.Line(value, 63)
}

func (m Mark) counts(value string) bool {
	switch {
	case m.Values != nil:
		return slices.Contains(m.Values, value)
	case m.Kind == Condition:
		return value == string(corev1.ConditionTrue)
	}
	return value != "false"
}

// RFC 3339 (kured) or seconds since 1970 (the cluster-autoscaler). Zero if the value is not a time.
func date(value string) time.Time {
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		return t
	}
	if s, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Unix(s, 0)
	}
	return time.Time{}
}
