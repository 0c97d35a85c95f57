package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/remediations"
)

// rawMark is an entry of holdWhen: a mapping, or false.
type rawMark struct {
	Off              bool
	Value, By, Means string
}

// UnmarshalJSON takes a boolean for an entry that is off; buildHoldWhen has a fault for true.
func (m *rawMark) UnmarshalJSON(data []byte) error {
	var on bool
	if json.Unmarshal(data, &on) == nil {
		*m = rawMark{Off: true}
		return nil
	}
	var entry struct{ Value, By, Means string }
	if err := json.Unmarshal(data, &entry); err != nil {
		return fmt.Errorf("reading an entry of holdWhen, %w", err)
	}
	*m = rawMark{Value: entry.Value, By: entry.By, Means: entry.Means}
	return nil
}

// buildAnnounce turns names into what they stand for; the schema knows no other name.
func (b *builder) buildAnnounce(raw *rawConfig) {
	for _, name := range raw.Announce {
		switch key, ok := remediations.Announcements[name]; {
		case ok:
			b.core.Announce = append(b.core.Announce, key)
		case name == "conditions":
			b.core.Conditions = true
		default:
			b.core.Leases, b.core.Reserves = true, true
		}
	}
}

// buildHoldWhen changes the shipped marks by what the configuration says of them, and adds its own behind them.
func (b *builder) buildHoldWhen(raw *rawConfig) {
	marks := remediations.ShippedMarks()
	w := raw.HoldWhen
	for kind, entries := range map[remediations.MarkKind]map[string]rawMark{
		remediations.MarkTaint: w.Taints, remediations.MarkLabel: w.Labels, remediations.MarkAnnotation: w.Annotations, remediations.MarkCondition: w.Conditions,
	} {
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			marks = b.mark(pointer{"holdWhen"}.To(string(kind), key), marks, kind, key, entries[key])
		}
	}
	slices.SortStableFunc(marks, func(x, y remediations.Mark) int {
		return slices.Index(remediations.MarkKinds, x.Kind) - slices.Index(remediations.MarkKinds, y.Kind)
	})
	b.core.HoldWhen = marks
}

// mark puts one entry into the list.
func (b *builder) mark(at pointer, marks remediations.Marks, kind remediations.MarkKind, key string, m rawMark) remediations.Marks {
	i := slices.IndexFunc(marks, func(m remediations.Mark) bool { return m.Kind == kind && m.Key == key })
	switch {
	case remediations.Relevant(key):
		b.Fault(at, "is Drydock's own key; to keep Drydock off a node set the label %s or the annotation %s", remediations.ExcludeLabel, remediations.PauseKey)
	case b.value(at) == true:
		b.Fault(at, "true says nothing; write by and means, or false to take a shipped entry out")
	case m.Off && i < 0:
		text := "false takes nothing out, because no shipped entry has this key; remove it"
		if near := nearest(key, marks.Keys(kind)); near != "" {
			text += fmt.Sprintf(", or did you mean %q?", near)
		}
		b.Fault(at, "%s", text)
	case m.Off:
		return slices.Delete(marks, i, i+1)
	case kind == remediations.MarkCondition && len(key) > 316:
		b.Fault(at, "is longer than the type of a condition can be; write at most 316 characters")
	case kind == remediations.MarkCondition && !slices.Contains([]string{"", "True", "False", "Unknown"}, m.Value):
		b.Fault(at.To("value"), "%s is not a status of a condition; write \"True\", \"False\" or \"Unknown\"", show(m.Value))
	case i >= 0:
		marks[i].Value, marks[i].By, marks[i].Means = m.Value, m.By, m.Means
	default:
		if problems := validation.IsQualifiedName(key); kind != remediations.MarkCondition && len(problems) > 0 {
			b.Fault(at, "%s is not the key of a taint, label or annotation; write for example example.com/maintenance", show(key))
		}
		return append(marks, remediations.Mark{Kind: kind, Key: key, Value: m.Value, By: m.By, Means: m.Means})
	}
	return marks
}
