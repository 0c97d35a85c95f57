package config

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v3"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"drydock.dev/drydock/internal/text"
)

func (d *document) validate(validator *jsonschema.Schema, s *schema) {
	err := validator.Validate(d.tree)
	if err == nil {
		return
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		d.whole(1, "cannot be validated: %v", err)
		return
	}
	var drop []pointer
	for _, leaf := range leaves(invalid) {
		drop = append(drop, d.translate(leaf, s)...)
	}
	for _, p := range drop {
		d.drop(p)
	}
}

func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var out []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		out = append(out, leaves(cause)...)
	}
	return out
}

func (d *document) translate(e *jsonschema.ValidationError, root *schema) []pointer {
	at := pointer(slices.Clone(e.InstanceLocation))
	s := root.at(at)
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		var drop []pointer
		for _, name := range k.Properties {
			p := at.To(name)
			d.unknownKey(p, s)
			drop = append(drop, p)
		}
		return drop
	case *kind.Required:
		for _, name := range k.Missing {
			p := at.To(name)
			d.Fault(p, "missing; %s", root.at(p).instead())
		}
		return nil
	case *kind.UniqueItems:
		p := at.To(k.Duplicates[1])
		d.Fault(p, "is the same as item [%d]; remove one of them", k.Duplicates[0])
		return []pointer{p}
	default:
		d.Fault(at, "%s", s.complain(e.ErrorKind, d.value(at)))
		return []pointer{at}
	}
}

// moved are former keys, with what to write instead.
var moved = map[string]string{
	pointer{"providers", "metal3"}.Key(): "metal3 is now a preset of providers.annotation: write annotation instead of metal3, and preset: metal3 beside the namespace",
}

func (d *document) unknownKey(p pointer, s *schema) {
	known := s.names()
	hint := "the known keys are " + list(known)
	if near := text.Nearest(p[len(p)-1], known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	if d.Faulty(p) {
		return
	}
	if instead := moved[p.Key()]; instead != "" {
		hint = instead
	}
	d.at[p.Key()] = true
	f := d.locate(p, false, "unknown key; "+hint)
	f.Line = d.places[p.Key()].keyLine
	d.faults = append(d.faults, f)
}

func (s *schema) complain(k jsonschema.ErrorKind, value any) string {
	switch k := k.(type) {
	case *kind.Type:
		if value == nil {
			return fmt.Sprintf("has no value; %s, or remove the key", s.instead())
		}
		// The message does not quote the value, because it may be a secret: a URL with a password instead
		// of a list, or a token instead of a mapping.
		if _, text := value.(string); text && (slices.Contains(k.Want, "object") || slices.Contains(k.Want, "array")) {
			return fmt.Sprintf("text is not %s; %s", s.noun(), s.instead())
		}
		return fmt.Sprintf("%s is not %s; %s", show(value), s.noun(), s.instead())
	case *kind.Const:
		return fmt.Sprintf("%s is not allowed here; %s", show(value), s.instead())
	case *kind.Enum:
		var known []string
		for _, v := range k.Want {
			known = append(known, fmt.Sprint(v))
		}
		says := fmt.Sprintf("%s is not one of %s", show(value), list(known))
		if near := text.Nearest(fmt.Sprint(value), known); near != "" {
			says += fmt.Sprintf("; did you mean %q?", near)
		}
		return says
	case *kind.Pattern:
		return fmt.Sprintf("%s is not %s; %s", show(value), s.noun(), s.instead())
	case *kind.MinLength, *kind.MinItems:
		return fmt.Sprintf("is empty; %s", s.instead())
	case *kind.MaxLength:
		return fmt.Sprintf("is longer than %d characters; write a shorter one", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("has more than %d entries; write fewer", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("has more than %d entries; write fewer", k.Want)
	case *kind.Minimum:
		return fmt.Sprintf("%s is too small; write at least %s", show(value), plain(k.Want))
	case *kind.Maximum:
		return fmt.Sprintf("%s is too large; write at most %s", show(value), plain(k.Want))
	default:
		return k.LocalizedString(message.NewPrinter(language.English))
	}
}

func (s *schema) names() []string {
	out := make([]string, len(s.properties))
	for i, p := range s.properties {
		out[i] = p.name
	}
	return out
}

func (s *schema) noun() string {
	if s.title != "" {
		return s.title
	}
	nouns := map[string]string{"object": "a mapping", "array": "a list", "string": "text", "integer": "a whole number", "boolean": "true or false"}
	var out []string
	for _, t := range s.types {
		out = append(out, nouns[t])
	}
	return strings.Join(out, " or ")
}

func (s *schema) instead() string {
	switch {
	case s.constant != nil:
		return fmt.Sprintf("write %v", s.constant)
	case len(s.enum) > 0:
		return fmt.Sprintf("write for example %v", s.enum[0])
	case len(s.required) > 0:
		return "write a mapping with " + list(s.required)
	case len(s.properties) > 0:
		return "write a mapping with " + list(s.names())
	case len(s.examples) > 0:
		return "write for example " + flow(s.examples[0])
	case s.fallback != nil:
		return "write for example " + flow(decoded[any](s.fallback))
	default:
		return "write " + s.noun()
	}
}

func flow(v any) string {
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	n.Style = yaml.FlowStyle
	out, err := yaml.Marshal(&n)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(string(out))
}

func show(v any) string {
	switch v := v.(type) {
	case string:
		if r := []rune(v); len(r) > 64 {
			return strconv.Quote(string(r[:64]) + "...")
		}
		return strconv.Quote(v)
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case nil:
		return "no value"
	default:
		return fmt.Sprint(v)
	}
}

func plain(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return r.RatString()
}
