package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
	"drydock.dev/drydock/remediations/marks"
)

// rawMark is an entry of holdWhen: a mapping, or false. A mark is a taint, label, annotation or
// condition that another system sets on a Node, and that holds repairs.
type rawMark struct {
	Off                           bool
	Value, By, Means, BelievedFor string
}

// UnmarshalJSON sets Off for both true and false. The function mark reports true as a fault.
func (m *rawMark) UnmarshalJSON(data []byte) error {
	var on bool
	if json.Unmarshal(data, &on) == nil {
		*m = rawMark{Off: true}
		return nil
	}
	var entry struct{ Value, By, Means, BelievedFor string }
	if err := json.Unmarshal(data, &entry); err != nil {
		return fmt.Errorf("reading an entry of holdWhen, %w", err)
	}
	*m = rawMark{Value: entry.Value, By: entry.By, Means: entry.Means, BelievedFor: entry.BelievedFor}
	return nil
}

// buildAnnounce reads how a repair is announced to other systems, for example by Node conditions.
// The schema allows only known names.
func (b *builder) buildAnnounce(raw *rawConfig) {
	for _, name := range raw.Announce {
		switch keys, ok := announce.Annotations[name]; {
		case ok:
			b.core.Announce = append(b.core.Announce, keys...)
		case name == "conditions":
			b.core.Conditions = true
		default:
			b.core.Leases, b.core.Reserves = true, true
		}
	}
}

// buildHoldWhen begins with the shipped marks. The entries of holdWhen change or remove a shipped
// mark, or add another one.
func (b *builder) buildHoldWhen(raw *rawConfig) {
	list := marks.Shipped()
	w := raw.HoldWhen
	for kind, entries := range map[marks.Kind]map[string]rawMark{
		marks.Taint: w.Taints, marks.Label: w.Labels, marks.Annotation: w.Annotations, marks.Condition: w.Conditions,
	} {
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			list = b.mark(pointer{"holdWhen"}.To(string(kind), key), list, kind, key, entries[key])
		}
	}
	slices.SortStableFunc(list, func(x, y marks.Mark) int {
		return slices.Index(marks.Kinds, x.Kind) - slices.Index(marks.Kinds, y.Kind)
	})
	b.core.HoldWhen = list
}

func (b *builder) mark(at pointer, list marks.List, kind marks.Kind, key string, m rawMark) marks.List {
	mark := marks.Mark{Kind: kind, Key: key, By: m.By, Means: m.Means}
	if m.Value != "" {
		mark.Values = []string{m.Value}
	}
	if m.BelievedFor != "" {
		mark.BelievedFor, _ = b.Duration(at.To("believedFor"), m.BelievedFor, time.Minute)
	}
	i := slices.IndexFunc(list, func(m marks.Mark) bool { return m.Kind == kind && m.Key == key })
	switch {
	case remediations.Relevant(key):
		b.Fault(at, "is Drydock's own key; to keep Drydock away from a node, set the label %s or the annotation %s", remediations.ExcludeLabel, remediations.PauseKey)
	case b.value(at) == true:
		b.Fault(at, "cannot be true; write by and means, or false to remove a shipped entry")
	case m.Off && i < 0:
		says := "no shipped entry has this key, so false has no effect; remove it"
		if near := text.Nearest(key, list.Keys(kind)); near != "" {
			says += fmt.Sprintf(", or did you mean %q?", near)
		}
		b.Fault(at, "%s", says)
	case m.Off:
		return slices.Delete(list, i, i+1)
	case kind == marks.Condition && len(key) > 316:
		b.Fault(at, "is too long for the type of a condition; write at most 316 characters")
	case kind == marks.Condition && !slices.Contains([]string{"", "True", "False", "Unknown"}, m.Value):
		b.Fault(at.To("value"), "%s is not a status of a condition; write \"True\", \"False\" or \"Unknown\"", show(m.Value))
	case i >= 0:
		list[i].Values, list[i].By, list[i].Means, list[i].BelievedFor = mark.Values, mark.By, mark.Means, mark.BelievedFor
	default:
		if problems := validation.IsQualifiedName(key); kind != marks.Condition && len(problems) > 0 {
			b.Fault(at, "%s is not the key of a taint, label or annotation; write for example example.com/maintenance", show(key))
		}
		return append(list, mark)
	}
	return list
}
