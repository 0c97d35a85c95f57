package receiver

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// scanner reads a payload in one pass. encoding/json needs four, and parsing is most of the cost of
// a post. It reads JSON only in the form that Alertmanager writes. For any other form it sets odd,
// and encoding/json reads the body instead. Otherwise the result is the same
// (TestScanReadsAsTheLibraryDoes).
type scanner struct {
	data []byte
	at   int
	// The number of open lists and objects.
	depth int
	odd   bool
}

// maxDepth bounds the recursion. A payload has four levels.
const maxDepth = 16

// ok is false if encoding/json must read the payload instead.
func scan(body []byte) (e envelope, alerts []wireAlert, ok bool) {
	w := &scanner{data: body}
	listed := false
	w.object([]string{"version", "groupKey", "receiver", "truncatedAlerts", "alerts"}, func(name string) {
		switch name {
		case "version":
			w.text(&e.Version)
		case "groupKey":
			w.text(&e.GroupKey)
		case "receiver":
			w.text(&e.Receiver)
		case "truncatedAlerts":
			w.decode(&e.TruncatedAlerts)
		case "alerts":
			listed = true
			w.list(func() {
				if len(alerts) == maxAlerts {
					w.odd = true
					return
				}
				alerts = append(alerts, w.alert())
			})
		}
	})
	w.peek()
	return e, alerts, listed && e.Version == "4" && !w.odd && w.at == len(body)
}

func (w *scanner) alert() (a wireAlert) {
	w.object([]string{"status", "labels", "startsAt"}, func(name string) {
		switch name {
		case "status":
			w.text(&a.Status)
		case "labels":
			if raw := w.value(); !w.odd && (raw[0] != '{' || a.Labels.UnmarshalJSON(raw) != nil) {
				w.odd = true
			}
		case "startsAt":
			if raw := w.value(); !w.odd && a.StartsAt.UnmarshalJSON(raw) != nil {
				w.odd = true
			}
		}
	})
	return a
}

// object calls read for each member with one of the names, and read must consume the value. It sets
// odd if a name occurs twice, or differs from one of the names only in case, because encoding/json
// would accept that member.
func (w *scanner) object(names []string, read func(name string)) {
	seen := 0
	w.each('{', '}', func() {
		raw, plain := w.quoted()
		if w.take(':'); w.odd {
			return
		}
		name := raw[1 : len(raw)-1]
		i := slices.IndexFunc(names, func(known string) bool { return string(name) == known })
		if i >= 0 && seen&(1<<i) == 0 {
			seen |= 1 << i
			read(names[i])
			return
		}
		w.odd = i >= 0 || !plain || slices.ContainsFunc(names, func(known string) bool {
			return len(known) == len(name) && bytes.EqualFold(name, []byte(known))
		})
		w.value()
	})
}

// read must consume one element.
func (w *scanner) list(read func()) { w.each('[', ']', read) }

// read must consume one element, without the comma.
func (w *scanner) each(begin, end byte, read func()) {
	if w.depth++; w.depth > maxDepth {
		w.odd = true
	}
	w.take(begin)
	if w.peek() != end {
		for read(); w.peek() == ','; read() {
			w.at++
		}
	}
	w.take(end)
	w.depth--
}

// value skips any value and returns its bytes. They are valid JSON, unless odd is set.
func (w *scanner) value() []byte {
	b := w.peek()
	begin := w.at
	switch b {
	case '{':
		w.object(nil, nil)
	case '[':
		w.list(func() { w.value() })
	case '"':
		w.quoted()
	default: // a number, true, false or null
		for w.at < len(w.data) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(w.data[w.at])) {
			w.at++
		}
		w.odd = w.odd || !json.Valid(w.data[begin:w.at])
	}
	if w.odd {
		return nil
	}
	return w.data[begin:w.at]
}

// decode decodes a value with encoding/json.
func (w *scanner) decode(into any) {
	if raw := w.value(); !w.odd && json.Unmarshal(raw, into) != nil {
		w.odd = true
	}
}

func (w *scanner) text(into *string) {
	switch raw, plain := w.quoted(); {
	case w.odd:
	case plain:
		*into = string(raw[1 : len(raw)-1])
	default:
		w.odd = json.Unmarshal(raw, into) != nil
	}
}

// quoted skips a string and returns its bytes with the quotes. plain means only ASCII characters
// and no escapes.
func (w *scanner) quoted() (raw []byte, plain bool) {
	if w.peek() == '"' {
		begin, escaped := w.at, false
		plain = true
		for i := begin + 1; i < len(w.data); i++ {
			switch b := w.data[i]; {
			case b == '"':
				w.at = i + 1
				raw = w.data[begin:w.at]
				w.odd = w.odd || (escaped && !json.Valid(raw))
				return raw, plain
			case b == '\\':
				plain, escaped = false, true
				i++
			case b < ' ':
				w.odd = true
				return nil, false
			case b >= utf8.RuneSelf:
				plain = false
			}
		}
	}
	w.odd = true
	return nil, false
}

// peek skips white space. It returns 0 at the end of the data, or if odd is set.
func (w *scanner) peek() byte {
	for ; !w.odd && w.at < len(w.data); w.at++ {
		switch b := w.data[w.at]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

// take skips one byte, which must be b.
func (w *scanner) take(b byte) {
	if w.peek() != b {
		w.odd = true
		return
	}
	w.at++
}
