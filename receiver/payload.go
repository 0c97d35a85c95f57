package receiver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// errTooManyAlerts is answered 413, as too many bytes are.
var errTooManyAlerts = fmt.Errorf("the post has more than %d alerts; let the route group by node", maxAlerts)

// envelope is what is read of Alertmanager's webhook payload, version 4. It
// mirrors notify/webhook.Message, which would bring in 525 packages. Keys grow
// with each release, so others are ignored. The group's status and the alerts'
// fingerprints are left out on purpose: nothing may depend on them.
type envelope struct {
	Version         string          `json:"version"`
	GroupKey        string          `json:"groupKey"`
	Receiver        string          `json:"receiver"`
	TruncatedAlerts uint64          `json:"truncatedAlerts"`
	Alerts          json.RawMessage `json:"alerts"`
}

// wireAlert is what is read of an alert: what decides anything. Its annotations and its link are for people, who read them
// at Alertmanager.
type wireAlert struct {
	Status   string    `json:"status"`
	Labels   texts     `json:"labels"`
	StartsAt time.Time `json:"startsAt"`
}

// texts are labels.
type texts struct {
	values  map[string]string
	tooLong bool // there were more than maxMapBytes, and none is decoded
}

// UnmarshalJSON decodes within maxMapBytes.
func (t *texts) UnmarshalJSON(data []byte) error {
	*t = texts{}
	if len(data) > maxMapBytes && data[0] == '{' {
		t.tooLong = true
		return nil
	}
	if values, ok := plainTexts(data); ok {
		t.values = values
		return nil
	}
	return json.Unmarshal(data, &t.values)
}

// plainTexts reads a flat object of strings without escapes, as nearly all labels are, at a fraction of what the library
// takes for it. The data are valid JSON already, or nobody would be given them; false: they are more than that, and the
// library has to read them.
func plainTexts(data []byte) (map[string]string, bool) {
	rest, ok := strings.CutPrefix(string(data), "{") // what is read shares this one copy
	if !ok {
		return nil, false
	}
	values := make(map[string]string, strings.Count(rest, `":`))
	for {
		rest = strings.TrimLeft(rest, " \t\r\n")
		if rest == "}" && len(values) == 0 {
			return values, true
		}
		var name, value string
		if name, rest, ok = plainText(rest); !ok || rest == "" || rest[0] != ':' {
			return nil, false
		}
		if value, rest, ok = plainText(strings.TrimLeft(rest[1:], " \t\r\n")); !ok || rest == "" {
			return nil, false
		}
		values[name] = value
		switch rest[0] {
		case ',':
			rest = rest[1:]
		case '}':
			return values, len(rest) == 1
		default:
			return nil, false
		}
	}
}

// plainText reads a string that stands for itself, and the white space behind it.
func plainText(data string) (text, rest string, ok bool) {
	if data == "" || data[0] != '"' {
		return "", "", false
	}
	end := strings.IndexByte(data[1:], '"') + 1
	if end == 0 {
		return "", "", false
	}
	for i := 1; i < end; i++ {
		if data[i] == '\\' || data[i] >= utf8.RuneSelf {
			return "", "", false
		}
	}
	return data[1:end], strings.TrimLeft(data[end+1:], " \t\r\n"), true
}

// post is a decoded payload.
type post struct {
	groupKey  string
	receiver  string
	truncated uint64
	alerts    []alert  // usable as far as can be told here, each once
	unusable  []string // why the others are not
}

// decode reads a payload. An error means that this is none of version 4, and is
// a sentence for the answer. What Alertmanager's users can cause with a label
// makes an alert unusable, never an error: one odd alert must not cost a node
// all others of its group.
func decode(body []byte) (post, error) {
	e, wire, ok := walk(body)
	if !ok {
		var err error
		if e, wire, err = readSlowly(body); err != nil {
			return post{}, err
		}
	}
	p := post{groupKey: e.GroupKey, receiver: e.Receiver, truncated: e.TruncatedAlerts}
	p.take(wire, identity)
	return p, nil
}

// readSlowly has the library read the payload, whatever is odd about it.
func readSlowly(body []byte) (envelope, []wireAlert, error) {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return e, nil, fmt.Errorf("the body is not an Alertmanager payload: %w", err)
	}
	if e.Version != "4" {
		return e, nil, fmt.Errorf("the payload's version is %.20q; only version 4 is understood", e.Version)
	}
	wire, err := decodeAlerts(e.Alerts)
	return e, wire, err
}

// decodeAlerts decodes one by one, so that a body of ten bytes an alert cannot
// ask for a million of them.
func decodeAlerts(raw json.RawMessage) ([]wireAlert, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	first, err := d.Token()
	if err != nil || first != json.Delim('[') {
		return nil, errors.New("the payload has no list of alerts")
	}
	var alerts []wireAlert
	for d.More() {
		if len(alerts) == maxAlerts {
			return nil, errTooManyAlerts
		}
		var a *wireAlert
		if err := d.Decode(&a); err != nil {
			return nil, fmt.Errorf("alert %d of the payload cannot be read: %w", len(alerts)+1, err)
		}
		if a == nil {
			return nil, fmt.Errorf("alert %d of the payload is null", len(alerts)+1)
		}
		alerts = append(alerts, *a)
	}
	return alerts, nil
}
