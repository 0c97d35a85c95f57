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

// The answer is 413, as for a body with too many bytes.
var errTooManyAlerts = fmt.Errorf("the post has more than %d alerts; set group_by: [alertname, cluster, node] on Alertmanager's route", maxAlerts)

// Alertmanager's webhook payload, version 4. Importing notify/webhook.Message instead would add 525
// packages. Releases add keys, so unknown keys are ignored. The group's status and the alerts'
// fingerprints are left out on purpose: nothing must depend on them.
type envelope struct {
	Version         string          `json:"version"`
	GroupKey        string          `json:"groupKey"`
	Receiver        string          `json:"receiver"`
	TruncatedAlerts uint64          `json:"truncatedAlerts"`
	Alerts          json.RawMessage `json:"alerts"`
}

// The alert's annotations and link are for people, who read them in Alertmanager.
type wireAlert struct {
	Status   string    `json:"status"`
	Labels   texts     `json:"labels"`
	StartsAt time.Time `json:"startsAt"`
}

type texts struct {
	values  map[string]string
	tooLong bool // the labels are longer than maxMapBytes and were not decoded
}

// UnmarshalJSON does not decode labels that are longer than maxMapBytes.
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

// plainTexts reads a flat JSON object of strings without escapes, like nearly all labels, much
// faster than encoding/json. It returns false for any other data. The data must be valid JSON, as
// encoding/json passes it to UnmarshalJSON.
func plainTexts(data []byte) (map[string]string, bool) {
	rest, ok := strings.CutPrefix(string(data), "{") // all labels share the memory of this one copy
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

// A JSON string without escapes. White space after it is skipped.
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

type post struct {
	groupKey  string
	receiver  string
	truncated uint64
	alerts    []alert  // usable alerts, without duplicates; the Recorder may still refuse them
	unusable  []string // the reasons why the other alerts are unusable
}

// decode returns an error if the body is not a payload of version 4. The error's text goes into the
// answer. An alert with labels beyond the limits only counts as unusable: users of Alertmanager
// choose labels, and one such alert must not stop the others of its group.
func decode(body []byte) (post, error) {
	e, wire, ok := scan(body)
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

// encoding/json also reads the payloads that scan cannot read.
func readSlowly(body []byte) (envelope, []wireAlert, error) {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return e, nil, fmt.Errorf("the body is not an Alertmanager payload: %w", err)
	}
	if e.Version != "4" {
		return e, nil, fmt.Errorf("the payload's version is %.20q; Drydock reads only version 4", e.Version)
	}
	wire, err := decodeAlerts(e.Alerts)
	return e, wire, err
}

// The alerts are decoded one by one, up to maxAlerts. Otherwise a body with ten bytes per alert
// could allocate a million alerts.
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
