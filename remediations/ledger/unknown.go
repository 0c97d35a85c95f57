package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// Unknown has the fields of one entry that a newer Drydock wrote, as one JSON object, or is empty.
// They are written back with their entry, but no decision depends on them.
//
// Those at deeper levels are in nested objects. The key of such an object is the name of the known
// field, the index in the list, or the key of the map.
type Unknown string

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()
)

// decodeEntry returns the fields that the struct does not have.
func decodeEntry(data []byte, into any) (Unknown, error) {
	if remediations.DecodeStrict(string(data), into) == nil {
		return "", nil // nearly all entries have no unknown fields
	}
	reflect.ValueOf(into).Elem().SetZero()
	known, unknown, err := separate(data, reflect.TypeOf(into).Elem())
	if err != nil {
		return "", err
	}
	if err := remediations.DecodeStrict(string(known), into); err != nil {
		return "", err
	}
	return Unknown(unknown), nil
}

func encodeEntry(entry any, unknown Unknown) ([]byte, error) {
	data := []byte(remediations.EncodeJSON(entry))
	if unknown == "" {
		return data, nil
	}
	return merge(data, []byte(unknown), reflect.TypeOf(entry)), nil
}

// separate returns nil for unknown if there are no other fields.
func separate(data json.RawMessage, t reflect.Type) (known, unknown json.RawMessage, err error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if readsItself(t) {
		return data, nil, nil
	}
	parts, others := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	part := func(name string, value json.RawMessage, of reflect.Type) error {
		in, out, err := separate(value, of)
		if parts[name] = in; out != nil {
			others[name] = out
		}
		return err
	}
	switch t.Kind() {
	case reflect.Struct:
		var all map[string]json.RawMessage
		if err := json.Unmarshal(data, &all); err != nil {
			return nil, nil, err
		}
		fields := fieldsOf(t)
		for name, value := range all {
			of, has := fields[name]
			if !has {
				others[name] = value
			} else if err := part(name, value, of); err != nil {
				return nil, nil, err
			}
		}
	case reflect.Map:
		var all map[string]json.RawMessage
		if err := json.Unmarshal(data, &all); err != nil {
			return nil, nil, err
		}
		for name, value := range all {
			if err := part(name, value, t.Elem()); err != nil {
				return nil, nil, err
			}
		}
	case reflect.Slice:
		var all []json.RawMessage
		if err := json.Unmarshal(data, &all); err != nil {
			return nil, nil, err
		}
		for i, value := range all {
			if err := part(strconv.Itoa(i), value, t.Elem()); err != nil {
				return nil, nil, err
			}
			all[i] = parts[strconv.Itoa(i)]
		}
		return json.RawMessage(remediations.EncodeJSON(all)), objectOf(others), nil
	default:
		return data, nil, nil
	}
	if len(others) == 0 {
		return data, nil, nil
	}
	return json.RawMessage(remediations.EncodeJSON(parts)), objectOf(others), nil
}

// merge leaves out fields whose surrounding object no longer exists. This package wrote both
// arguments as JSON, so decoding them cannot fail.
func merge(data, unknown json.RawMessage, t reflect.Type) json.RawMessage {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var others map[string]json.RawMessage
	_ = json.Unmarshal(unknown, &others)
	if t.Kind() == reflect.Slice {
		var all []json.RawMessage
		_ = json.Unmarshal(data, &all)
		for i, value := range all {
			if other := others[strconv.Itoa(i)]; other != nil {
				all[i] = merge(value, other, t.Elem())
			}
		}
		return json.RawMessage(remediations.EncodeJSON(all))
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(data, &all)
	var fields map[string]reflect.Type
	if t.Kind() == reflect.Struct {
		fields = fieldsOf(t)
	}
	for name, other := range others {
		of, known := fields[name]
		if t.Kind() == reflect.Map {
			of, known = t.Elem(), true
		}
		value, there := all[name]
		switch {
		case !known:
			all[name] = other
		case there:
			all[name] = merge(value, other, of)
		}
	}
	return json.RawMessage(remediations.EncodeJSON(all))
}

// objectOf sorts the names. It returns nil if there are no fields.
func objectOf(fields map[string]json.RawMessage) json.RawMessage {
	if len(fields) == 0 {
		return nil
	}
	return json.RawMessage(remediations.EncodeJSON(fields))
}

// readsItself reports whether separate cannot find unknown fields, because the type has its own
// decoder.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(unmarshaler) || p.Implements(textUnmarshaler)
}

// fieldsOf supports no embedded fields, and expects a JSON name for each field.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "-" {
			fields[name] = f.Type
		}
	}
	return fields
}

// UnknownFields returns the names of at most ten fields and keys that this version does not know,
// and how many more there are. A name begins with its key of the ConfigMap.
func (l *Ledger) UnknownFields() []string {
	if l == nil {
		return nil
	}
	all := map[string]bool{}
	for key := range l.Others {
		all[key] = true
	}
	note := func(part string, unknown Unknown) {
		var fields map[string]json.RawMessage
		_ = json.Unmarshal([]byte(unknown), &fields) // an empty text leaves fields empty
		for name := range fields {
			all[part+"."+name] = true
		}
	}
	for _, s := range l.Slots {
		note(KeySlots, s.Unknown)
	}
	begun := func(part string, all []Begun) {
		for _, b := range all {
			note(part, b.Unknown)
		}
	}
	for _, b := range l.Repairs {
		begun(keyRepairs, b)
	}
	for _, b := range l.Moves {
		begun(keyMoves, b)
	}
	begun(keyWide, l.Wide)
	for _, o := range l.Orphans {
		note(keyOrphans, o.Unknown)
	}
	for _, cures := range l.Cures {
		for _, c := range cures {
			note(ledgerCures, c.Unknown)
		}
	}
	for _, s := range l.Unseen {
		note(ledgerUnseen, s.Unknown)
	}
	for _, ends := range l.Ends {
		for _, e := range ends {
			note(keyEnds, e.Unknown)
		}
	}
	note(KeyStatus, l.Status.Unknown)
	note(keyStatusMore, l.Status.UnknownMore)
	names := slices.Sorted(maps.Keys(all))
	for i := range names {
		names[i] = text.Line(names[i], 80)
	}
	if more := len(names) - 10; more > 0 {
		names = append(names[:10], fmt.Sprintf("and %d more", more))
	}
	return names
}
