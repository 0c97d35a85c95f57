package remediations

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// MarkKind is where on a Node a mark stands, named as its key in holdWhen.
type MarkKind string

const (
	MarkTaint      MarkKind = "taints"
	MarkLabel      MarkKind = "labels"
	MarkAnnotation MarkKind = "annotations"
	MarkCondition  MarkKind = "conditions"
)

// MarkKinds is the closed list, in the order in which a Node is searched.
var MarkKinds = []MarkKind{MarkTaint, MarkLabel, MarkAnnotation, MarkCondition}

// noun is what one mark of the kind is called in a sentence.
func (k MarkKind) noun() string {
	return map[MarkKind]string{MarkTaint: "taint", MarkLabel: "label", MarkAnnotation: "annotation", MarkCondition: "condition"}[k]
}

// Mark is what another system, or a person, writes on a Node to say that it is at work on it, or that nobody else may be.
type Mark struct {
	Kind MarkKind
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

// Marks are those that hold every repair of a node, in the order in which they are searched. Nil: the shipped ones.
type Marks []Mark

// Keys are the keys of the marks of one kind.
func (m Marks) Keys(kind MarkKind) (keys []string) {
	for _, mark := range m.OrShipped() {
		if mark.Kind == kind {
			keys = append(keys, mark.Key)
		}
	}
	return keys
}

// OrShipped are the marks themselves, or the shipped ones where the configuration names none.
func (m Marks) OrShipped() Marks {
	if m == nil {
		return shippedMarks
	}
	return m
}

// Leaving says who else is at work on the node, or takes it away; empty: nobody that is known. What Drydock itself set for a repair
// that is in the Node's journal is no mark.
func (m Marks) Leaving(n *corev1.Node, j Journal) string {
	if n.DeletionTimestamp != nil {
		return "the Node is being deleted"
	}
	for _, mark := range m.OrShipped() {
		if shown, ok := mark.on(n, j); ok {
			return fmt.Sprintf("%s %s set by %s: %s", mark.Kind.noun(), shown, mark.By, mark.Means)
		}
	}
	return ""
}

// on says how the mark stands on the Node, where it does and is not Drydock's own.
func (m Mark) on(n *corev1.Node, j Journal) (shown string, ok bool) {
	switch m.Kind {
	case MarkTaint:
		for _, t := range n.Spec.Taints {
			if t.Key == m.Key && m.counts(t.Value) && !j.ownTaint(t) {
				return m.Key, true
			}
		}
	case MarkLabel:
		return m.in(n.Labels)
	case MarkAnnotation:
		if !j.Announced(n, m.Key) {
			return m.in(n.Annotations)
		}
	case MarkCondition:
		for _, c := range n.Status.Conditions {
			if string(c.Type) == m.Key && string(c.Status) == cmp.Or(m.Value, string(corev1.ConditionTrue)) && !OwnCondition(c) && (!m.echo || !j.caused(c)) {
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
	return m.Key + "=" + clip(v, 63), true
}

func (m Mark) counts(value string) bool {
	if m.Value != "" {
		return value == m.Value
	}
	return value != "false"
}

// ownTaint says that the taint is one that Drydock has on record.
func (j Journal) ownTaint(t corev1.Taint) bool {
	return slices.ContainsFunc(j.ToUndo(), func(u Undo) bool { return u.Set(t) })
}

// caused says that the condition appeared after the last step of the node's repair was issued.
func (j Journal) caused(c corev1.NodeCondition) bool {
	r := j.Record
	return r != nil && r.Intent != nil && !c.LastTransitionTime.Time.Before(r.Intent.At)
}
