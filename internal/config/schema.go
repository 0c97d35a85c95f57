package config

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	hosts "drydock.dev/drydock/remediations/providers/hosts/settings"
)

//go:embed schema.json
var schemaFile []byte

// schemaJSON is schema.json with the parts of the remediations and the providers.
var schemaJSON = sync.OnceValue(func() []byte { return schemaWith(nil) })

// schemaWith also allows the remediations of the registry in plans.
func schemaWith(g remediations.Registry) []byte {
	const place, addresses = `{"$comment": "remediations: wait, attempts and timeout, from their registry"}`, `{"$comment": "hosts: how many addresses one has"}`
	var steps []string
	for _, name := range g.Names() {
		known, _ := g.Of(name)
		defaults := fmt.Sprintf(`"wait": {"default": "%s"}, "attempts": {"default": %d}`, text.Duration(known.Wait), known.Attempts)
		if !known.Once {
			defaults = fmt.Sprintf(`"timeout": {"default": "%s"}`, text.Duration(known.Timeout))
		}
		steps = append(steps, fmt.Sprintf(`{"if": {"properties": {"step": {"const": "%s"}}}, "then": {"properties": {%s}}}`, name, defaults))
	}
	schema := withSections(schemaFile)
	schema = bytes.Replace(schema, []byte(addresses), []byte(strconv.Itoa(hosts.MaxAddresses)), 1)
	return bytes.Replace(schema, []byte(place), []byte(strings.Join(steps, ",\n        ")), 1)
}

// SchemaJSON returns the JSON Schema (draft 2020-12) of a configuration that has all defaults.
func SchemaJSON() []byte { return bytes.Clone(schemaJSON()) }

// schema has the parts that defaults, messages and documentation need. Its references are resolved.
// Its properties are in the order of the file.
type schema struct {
	title, description string
	types              []string
	enum               []any
	constant           any
	examples           []any
	minimum, maximum   string
	fallback           *yaml.Node
	// fallbackFrom is the path of the key whose value is the default.
	fallbackFrom string
	// fallbackUnless are sibling keys. If one of them is set, there is no default.
	fallbackUnless []string
	required       []string
	properties     []property
	items          *schema
	additional     *schema
	conditions     []condition
}

type property struct {
	name string
	*schema
}

// condition is an if-then of the schema: if key has this value, the defaults in the then-branch
// apply, too.
type condition struct {
	key   string
	value any
	then  *schema
}

type compiled struct {
	root, policies       *schema
	validate, policyList *jsonschema.Schema
}

// loadSchema panics if the schema is invalid. This does not happen in a release, because the schema
// is embedded and a test loads it.
var loadSchema = sync.OnceValue(func() compiled { return compileSchema(schemaJSON()) })

func schemaFor(g remediations.Registry) compiled {
	if len(g) == 0 {
		return loadSchema()
	}
	return compileSchema(schemaWith(g))
}

func compileSchema(text []byte) compiled {
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil {
		panic(fmt.Errorf("reading schema.json, %w", err))
	}
	root := file.Content[0]
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(fmt.Errorf("reading schema.json, %w", err))
	}
	const id = "https://drydock.dev/schema/v1alpha1/config.json"
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(id, document); err != nil {
		panic(fmt.Errorf("reading schema.json, %w", err))
	}
	out := compiled{
		root:       readSchema(root, root),
		validate:   compiler.MustCompile(id),
		policyList: compiler.MustCompile(id + "#/$defs/policies"),
	}
	out.policies = readSchema(entry(entry(root, "$defs"), "policies"), root)
	return out
}

func entry(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func readSchema(n, root *yaml.Node) *schema {
	s := &schema{}
	s.read(n, root)
	return s
}

// read reads n's $ref first, because keys beside a $ref override the referenced schema.
func (s *schema) read(n, root *yaml.Node) {
	if ref := entry(n, "$ref"); ref != nil {
		s.read(entry(entry(root, "$defs"), strings.TrimPrefix(ref.Value, "#/$defs/")), root)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		value := n.Content[i+1]
		switch n.Content[i].Value {
		case "title":
			s.title = value.Value
		case "description":
			s.description = value.Value
		case "type":
			s.types = []string{value.Value}
			if value.Kind == yaml.SequenceNode {
				s.types = decoded[[]string](value)
			}
		case "enum":
			s.enum = decoded[[]any](value)
		case "const":
			s.constant = decoded[any](value)
		case "examples":
			s.examples = decoded[[]any](value)
		case "minimum":
			s.minimum = value.Value
		case "maximum":
			s.maximum = value.Value
		case "default":
			s.fallback = value
		case "x-default-from":
			s.fallbackFrom = value.Value
		case "x-default-unless":
			s.fallbackUnless = decoded[[]string](value)
		case "required":
			s.required = decoded[[]string](value)
		case "items":
			s.items = readSchema(value, root)
		case "additionalProperties":
			if value.Kind == yaml.MappingNode {
				s.additional = readSchema(value, root)
			}
		case "properties":
			for j := 0; j+1 < len(value.Content); j += 2 {
				s.properties = append(s.properties, property{value.Content[j].Value, readSchema(value.Content[j+1], root)})
			}
		case "allOf":
			for _, c := range value.Content {
				s.conditions = append(s.conditions, readCondition(c, root))
			}
		}
	}
}

func readCondition(n, root *yaml.Node) condition {
	test := entry(entry(n, "if"), "properties")
	return condition{
		key:   test.Content[0].Value,
		value: decoded[any](entry(test.Content[1], "const")),
		then:  readSchema(entry(n, "then"), root),
	}
}

func decoded[T any](n *yaml.Node) T {
	var v T
	if err := n.Decode(&v); err != nil {
		panic(fmt.Errorf("reading schema.json, line %d, %w", n.Line, err))
	}
	return v
}

func (s *schema) at(p pointer) *schema {
	for _, token := range p {
		var next *schema
		i := slices.IndexFunc(s.properties, func(c property) bool { return c.name == token })
		switch {
		case i >= 0:
			next = s.properties[i].schema
		case s.items != nil:
			next = s.items
		case s.additional != nil:
			next = s.additional
		default:
			return &schema{}
		}
		s = next
	}
	return s
}

// fill adds missing keys with their defaults. It ignores values of a wrong type, because validation
// reports those.
func (s *schema) fill(v any, root map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		s.fillObject(v, root)
		for _, c := range s.conditions {
			if v[c.key] == c.value {
				c.then.fillObject(v, root)
			}
		}
	case []any:
		if s.items != nil {
			for _, item := range v {
				s.items.fill(item, root)
			}
		}
	}
}

func (s *schema) fillObject(v, root map[string]any) {
	for _, p := range s.properties {
		if _, present := v[p.name]; !present {
			value, ok := p.defaultValue(root)
			if !ok || slices.ContainsFunc(p.fallbackUnless, func(other string) bool { _, present := v[other]; return present }) {
				continue
			}
			v[p.name] = value
		}
		p.fill(v[p.name], root)
	}
}

func (s *schema) defaultValue(root map[string]any) (any, bool) {
	if s.fallbackFrom != "" {
		v, ok := root[s.fallbackFrom]
		return v, ok && slices.Contains(s.enum, v)
	}
	if s.fallback == nil {
		return nil, false
	}
	return decoded[any](s.fallback), true
}
