// Package marks recognizes the marks that other systems and people set on a Node to claim it:
// taints, labels, annotations and conditions. It judges a Node, and reads nothing itself.
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

// Kind is where a mark is on a Node. Its value is the key in holdWhen.
type Kind string

const (
	Taint      Kind = "taints"
	Label      Kind = "labels"
	Annotation Kind = "annotations"
	Condition  Kind = "conditions"
)

// Kinds is the closed list, in the order of the search on a Node.
var Kinds = []Kind{Taint, Label, Annotation, Condition}

// noun returns the name of one mark of the kind in messages.
func (k Kind) noun() string {
	return map[Kind]string{Taint: "taint", Label: "label", Annotation: "annotation", Condition: "condition"}[k]
}

// Mark is what another system, or a person, sets on a Node to claim it: the owner works on the
// Node, or others must not.
type Mark struct {
	Kind Kind
	// Key is the key of the taint, label or annotation, or the type of the condition.
	Key string
	// Values are the only values that count; for a condition, its statuses. None: any value but
	// "false"; for a condition, "True".
	Values []string
	// BelievedFor is how long a mark with a date holds repairs. Zero: until its owner removes the
	// mark.
	BelievedFor time.Duration
	// By names the owner that sets the mark. Means is what the mark says of the node, as the end of
	// a sentence.
	By, Means string
	// Source is the file of the owner's public code or documentation that names the key. Only
	// shipped marks have one.
	Source string
	// echo: a reboot by Drydock causes the mark, too, so a mark that appeared after a repair's last
	// step does not hold that repair.
	echo bool
}

// List are the marks that hold every repair of a node, in the order of the search. Nil: the shipped
// marks.
type List []Mark

// Own reports which parts of a Node Drydock set itself, so that they are not marks. The Node's
// journal implements it.
type Own interface {
	OwnTaint(t corev1.Taint) bool
	Announced(n *corev1.Node, key string) bool
	OwnCondition(c corev1.NodeCondition) bool
	// Caused reports whether the condition appeared after the last step of the node's repair was
	// issued.
	Caused(c corev1.NodeCondition) bool
}

// Keys returns the keys of the marks of one kind.
func (l List) Keys(kind Kind) (keys []string) {
	for _, mark := range l.OrShipped() {
		if mark.Kind == kind {
			keys = append(keys, mark.Key)
		}
	}
	return keys
}

// OrShipped returns the marks themselves, or the shipped marks if the configuration has none.
func (l List) OrShipped() List {
	if l == nil {
		return shipped
	}
	return l
}

// Claim is the result of the marks on a Node at one moment.
type Claim struct {
	// Why names who works on the node or removes it; empty: no known system.
	Why string
	// Until is when the mark is no longer believed; zero: the mark holds until its owner removes
	// it.
	Until time.Time
	// Overdue names the marks that are older than they are believed. They hold nothing.
	Overdue string
}

// Leaving returns who works on the node or removes it; empty: no known system.
func (l List) Leaving(n *corev1.Node, own Own, now time.Time) string { return l.Claim(n, own, now).Why }

// Claim reads the marks of the Node. What Drydock set for a repair in the Node's journal is not a
// mark.
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
		// A date before the Node's creation, or in the future, comes from a wrong clock or is not a
		// date at all.
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

// on returns how the mark appears on the Node, and since when if it has a date. ok is false if the
// Node does not have the mark, or Drydock set it itself.
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

// date reads the value of a mark as a time: RFC 3339, as kured writes it, or seconds since 1970, as
// the cluster-autoscaler does. Zero: the value is not a time.
func date(value string) time.Time {
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		return t
	}
	if s, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Unix(s, 0)
	}
	return time.Time{}
}
