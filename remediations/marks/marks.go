// Package marks knows how other systems and people say on a Node that it is theirs: by taints, labels, annotations and conditions. It
// judges a Node, and reads nothing.
package marks

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
)

// Kind is where on a Node a mark stands, named as its key in holdWhen.
type Kind string

const (
	Taint      Kind = "taints"
	Label      Kind = "labels"
	Annotation Kind = "annotations"
	Condition  Kind = "conditions"
)

// Kinds is the closed list, in the order in which a Node is searched.
var Kinds = []Kind{Taint, Label, Annotation, Condition}

// noun is what one mark of the kind is called in a sentence.
func (k Kind) noun() string {
	return map[Kind]string{Taint: "taint", Label: "label", Annotation: "annotation", Condition: "condition"}[k]
}

// Mark is what another system, or a person, writes on a Node to say that it is at work on it, or that nobody else may be.
type Mark struct {
	Kind Kind
	// Key is the key of the taint, label or annotation, or the type of the condition.
	Key string
	// Value is the only value that counts, of a condition its status; empty: any value but "false", of a condition "True".
	Value string
	// By names who sets it, Means what it says of the node, as the end of a sentence.
	By, Means string
	// Source is the file in which the owner's public code or documentation names the key. Only shipped marks have one.
	Source string
	// echo: a reboot by Drydock causes it, too, so one that appeared after a repair's last step does not hold that repair.
	echo bool
}

// List are the marks that hold every repair of a node, in the order in which they are searched. Nil: the shipped ones.
type List []Mark

// Own knows what of a Node is Drydock's own work, which is no mark: the Node's journal.
type Own interface {
	OwnTaint(t corev1.Taint) bool
	Announced(n *corev1.Node, key string) bool
	OwnCondition(c corev1.NodeCondition) bool
	// Caused says that the condition appeared after the last step of the node's repair was issued.
	Caused(c corev1.NodeCondition) bool
}

// Keys are the keys of the marks of one kind.
func (l List) Keys(kind Kind) (keys []string) {
	for _, mark := range l.OrShipped() {
		if mark.Kind == kind {
			keys = append(keys, mark.Key)
		}
	}
	return keys
}

// OrShipped are the marks themselves, or the shipped ones where the configuration names none.
func (l List) OrShipped() List {
	if l == nil {
		return shipped
	}
	return l
}

// Leaving says who else is at work on the node, or takes it away; empty: nobody that is known. What Drydock itself set for a repair
// that is in the Node's journal is no mark.
func (l List) Leaving(n *corev1.Node, own Own) string {
	if n.DeletionTimestamp != nil {
		return "the Node is being deleted"
	}
	for _, mark := range l.OrShipped() {
		if shown, ok := mark.on(n, own); ok {
			return fmt.Sprintf("%s %s set by %s: %s", mark.Kind.noun(), shown, mark.By, mark.Means)
		}
	}
	return ""
}

// on says how the mark stands on the Node, where it does and is not Drydock's own.
func (m Mark) on(n *corev1.Node, own Own) (shown string, ok bool) {
	switch m.Kind {
	case Taint:
		for _, t := range n.Spec.Taints {
			if t.Key == m.Key && m.counts(t.Value) && !own.OwnTaint(t) {
				return m.Key, true
			}
		}
	case Label:
		return m.in(n.Labels)
	case Annotation:
		if !own.Announced(n, m.Key) {
			return m.in(n.Annotations)
		}
	case Condition:
		for _, c := range n.Status.Conditions {
			if string(c.Type) == m.Key && string(c.Status) == cmp.Or(m.Value, string(corev1.ConditionTrue)) && !own.OwnCondition(c) && (!m.echo || !own.Caused(c)) {
				return fmt.Sprintf("%s=%s", c.Type, c.Status), true
			}
		}
	}
	return "", false
}

func (m Mark) in(marks map[string]string) (shown string, ok bool) {
	v, ok := marks[m.Key]
	if !ok || !m.counts(v) {
		return "", false
	}
	if m.Value == "" {
		return m.Key, true
	}
	return m.Key + "=" + text.Line(v, 63), true
}

func (m Mark) counts(value string) bool {
	if m.Value != "" {
		return value == m.Value
	}
	return value != "false"
}
