package receiver

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// scanner reads a payload in one pass, where the library needs four: parsing is most of the cost of
// a post. It reads JSON as Alertmanager writes it. It stops at anything odd, and the library reads
// the body instead. walker reads a body exactly as the library would
// (TestWalkReadsAsTheLibraryDoes).
type scanner struct {
	data []byte
	at   int
	// depth is the number of open lists and objects.
	depth int
	odd   bool
}

// maxDepth bounds the walker's own stack. A payload has four levels.
const maxDepth = 16

// scan reads the payload. False: something in the payload is odd.
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

// object passes over an object. read must pass over the value of each member with one of the names;
// other members are skipped. A name that occurs twice, or that the library would match to one of
// the names, is odd.
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

// list passes over a list. read must pass over each element.
func (w *scanner) list(read func()) { w.each('[', ']', read) }

// each passes over a list or object between begin and end, with commas between the elements.
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

// value passes over any value and returns its text: valid JSON, unless something is odd.
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

// decode lets the library read a value.
func (w *scanner) decode(into any) {
	if raw := w.value(); !w.odd && json.Unmarshal(raw, into) != nil {
		w.odd = true
	}
}

// text reads a string.
func (w *scanner) text(into *string) {
	switch raw, plain := w.quoted(); {
	case w.odd:
	case plain:
		*into = string(raw[1 : len(raw)-1])
	default:
		w.odd = json.Unmarshal(raw, into) != nil
	}
}

// quoted passes over a string and returns it with its quotes. plain: the text between the quotes
// has no escapes.
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

// peek passes over white space and returns the next byte. 0: the end, or something odd.
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

// take passes over one required byte.
func (w *scanner) take(b byte) {
	if w.peek() != b {
		w.odd = true
		return
	}
	w.at++
}
