package section

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Checker is a Provider with values that depend on each other. Check adds a fault for each wrong
// combination of values.
type Checker interface{ Check(r Reader, at Pointer) }

// Declared returns a Section.Read for a section that the struct S declares. The tag json of a field
// is the key, and the field's type decides how the value is read. Other tags:
//
//   - as: "file" is the path of a file with a secret. "label" is the key of a label. "look" is how
//     long one request of an observation may wait for its answer (see LookTimeout).
//   - least: the shortest allowed duration. Without this tag, it is 1s.
//   - most: the longest allowed duration and, after a comma, the reason that the fault names.
//
// Defaults are in the section's schema.
func Declared[S any, P interface {
	*S
	Provider
}]() func(Reader, Pointer, json.RawMessage) Provider {
	return Reading(func(r Reader, at Pointer, tree *map[string]json.RawMessage) Provider {
		out := P(new(S))
		fields := reflect.ValueOf(out).Elem()
		for i := range fields.NumField() {
			f := fields.Type().Field(i)
			key := f.Tag.Get("json")
			if err := read(r, at.To(key), f.Tag, (*tree)[key], fields.Field(i).Addr().Interface()); err != nil { // the schema allows a value that does not fit the Go type
				r.Fault(at.To(key), "cannot be decoded: %v", err)
			}
		}
		if c, ok := any(out).(Checker); ok {
			c.Check(r, at)
		}
		return out
	})
}

func read(r Reader, at Pointer, tag reflect.StructTag, value json.RawMessage, field any) error {
	switch to := field.(type) {
	case *string:
		return as(value, func(text string) {
			switch *to = text; tag.Get("as") {
			case "file":
				*to = r.SecretFile(at, text)
			case "label":
				r.LabelKey(at, text)
			}
		})
	case *time.Duration:
		return as(value, func(text string) { *to = duration(r, at, tag, text) })
	case **url.URL:
		return as(value, func(text string) { *to = r.URL(at, text) })
	case *[]*url.URL:
		return as(value, func(texts []string) { *to = r.URLs(at, texts) })
	case *promconfig.HTTPClientConfig:
		return as(value, func(tree map[string]any) { *to = r.HTTPConfig(at, tree) })
	case **SecretKey:
		return as(value, func(key *SecretKey) { *to = key.Read(r, at) })
	case *types.NamespacedName:
		return as(value, func(text string) { *to = r.NamespacedName(at, text) })
	case *k8slabels.Selector:
		return as(value, func(s *metav1.LabelSelector) { *to = r.Nodes(at, s) })
	}
	return decode(value, field)
}

func as[Written any](value json.RawMessage, take func(Written)) error {
	var written Written
	err := decode(value, &written)
	if err == nil {
		take(written)
	}
	return err
}

func decode(value json.RawMessage, into any) error {
	if value == nil {
		return nil
	}
	return json.Unmarshal(value, into)
}

func duration(r Reader, at Pointer, tag reflect.StructTag, text string) time.Duration {
	least, err := time.ParseDuration(tag.Get("least"))
	if err != nil {
		least = time.Second
	}
	if tag.Get("as") == "look" {
		return LookTimeout(r, at, text, least)
	}
	d, ok := r.Duration(at, text, least)
	limit, _, _ := strings.Cut(tag.Get("most"), ",")
	if most, err := time.ParseDuration(limit); err == nil && ok && d > most {
		r.Fault(at, "%s is too long; write at most %s", text, tag.Get("most"))
	}
	return d
}
