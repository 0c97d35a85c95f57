package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"drydock.dev/drydock/internal/config"
)

type object = map[string]any

// laidUnder are required keys that the chart adds to the configuration, so its values may lack
// them.
var laidUnder = []string{
	"apiVersion", "kind", "alertmanager.urls",
	"providers.civo.apiKeyFile", "providers.hosts.keyFile", "providers.hosts.knownHostsFile",
}

// made are keys of mappings that the chart also writes by itself. So the chart's values may have
// null there.
var made = []string{"receiver", "alertmanager", "leaderElection", "ledger", "webhook"}

func editorSchema() []byte {
	return []byte(format(written(), "") + "\n")
}

// chartSchema expects that config is the last value in the chart's values.schema.json.
func chartSchema(values []byte) ([]byte, error) {
	const last = "\n    \"config\": {"
	head, _, found := bytes.Cut(values, []byte(last))
	if !found {
		return nil, fmt.Errorf("the chart's values.schema.json has no property %q", "config")
	}
	s := written()
	delete(s, "$id")
	delete(s, "$schema")
	s["$comment"] = "Written by `go run ./internal/config/gendocs` from the program's own schema. Do not edit."
	for _, path := range laidUnder {
		keys := strings.Split(path, ".")
		at := s
		for _, key := range keys[:len(keys)-1] {
			at = at["properties"].(object)[key].(object)
		}
		without(at, keys[len(keys)-1])
	}
	for _, key := range made {
		properties(s)[key].(object)["type"] = []any{"object", "null"}
	}
	text := strings.ReplaceAll(format(s, "    "), `"#/$defs/`, `"#/properties/config/$defs/`)
	return fmt.Appendf(nil, "%s\n    \"config\": %s\n  }\n}\n", head, text), nil
}

// written returns the schema of a document as a person writes it, without defaults. It does not
// require keys with a default, because the program adds the defaults before it checks required
// keys.
func written() object {
	var s object
	if err := json.Unmarshal(config.SchemaJSON(), &s); err != nil {
		panic(fmt.Errorf("reading the configuration's schema, %w", err)) // impossible: the program itself reads this schema
	}
	beforeDefaults(s)
	policy := s["$defs"].(object)["policy"].(object)
	policy["required"] = []any{"name"}
	policy["allOf"] = []any{object{
		"if":   object{"properties": object{"name": object{"enum": config.ShippedPolicyNames()}}},
		"else": object{"required": []any{"match", "plan"}},
	}}
	return s
}

// beforeDefaults makes each key with a default optional. A key that has a default only for some
// values of another key stays required for the other values.
func beforeDefaults(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			beforeDefaults(item)
		}
	case object:
		for _, condition := range list(v["allOf"]) {
			c := condition.(object)
			if otherwise := conditional(v, c["then"].(object)); len(otherwise) > 0 {
				c["else"] = otherwise
			}
		}
		for key, property := range properties(v) {
			if p, ok := property.(object); ok && p["default"] != nil {
				without(v, key)
			}
		}
		for _, item := range v {
			beforeDefaults(item)
		}
	}
}

// conditional makes keys with a default in the then-branch optional in s. The returned schema is
// for the else-branch, and still requires them.
func conditional(s, then object) object {
	otherwise, below := object{}, object{}
	for key, property := range properties(then) {
		own, _ := properties(s)[key].(object)
		if property.(object)["default"] != nil {
			if without(s, key) {
				addRequired(otherwise, key)
			}
			continue
		}
		if further := conditional(own, property.(object)); len(further) > 0 {
			below[key] = further
			addRequired(otherwise, key)
		}
	}
	if len(below) > 0 {
		otherwise["properties"] = below
	}
	return otherwise
}

func properties(s object) object {
	p, _ := s["properties"].(object)
	return p
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func addRequired(s object, key string) {
	required := append(list(s["required"]), key)
	slices.SortFunc(required, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	s["required"] = required
}

func without(s object, key string) bool {
	required := list(s["required"])
	left := slices.DeleteFunc(slices.Clone(required), func(k any) bool { return k == key })
	if s["required"] = left; len(left) == 0 {
		delete(s, "required")
	}
	return len(left) < len(required)
}

func format(v any, indent string) string {
	var short bytes.Buffer
	encoder := json.NewEncoder(&short)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Errorf("writing a schema, %w", err)) // impossible: the value was read from JSON
	}
	if text := strings.TrimSpace(short.String()); len(indent)+len(text) <= 120 {
		return text
	}
	var parts []string
	deeper := indent + "  "
	switch v := v.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, fmt.Sprintf("%s%q: %s", deeper, key, format(v[key], deeper)))
		}
		return "{\n" + strings.Join(parts, ",\n") + "\n" + indent + "}"
	case []any:
		for _, item := range v {
			parts = append(parts, deeper+format(item, deeper))
		}
		return "[\n" + strings.Join(parts, ",\n") + "\n" + indent + "]"
	}
	return strings.TrimSpace(short.String())
}
