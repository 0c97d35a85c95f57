package config

import (
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// maxDepth bounds the nested levels, and so the work for a malicious document.
const maxDepth = 64

// convert returns node as a JSON decoder would return it, and records the line of each value.
func (d *document) convert(node *yaml.Node, at pointer, path string) any {
	if len(at) > maxDepth {
		d.Fault(at, "is nested more than %d levels deep, which no configuration needs", maxDepth)
		return nil
	}
	switch node.Kind {
	case yaml.MappingNode:
		if node.ShortTag() != "!!map" {
			return d.tagged(node, at)
		}
		return d.convertMapping(node, at, path)
	case yaml.SequenceNode:
		if node.ShortTag() != "!!seq" {
			return d.tagged(node, at)
		}
		out := make([]any, len(node.Content))
		for i, item := range node.Content {
			p, itemPath := at.To(i), fmt.Sprintf("%s[%d]", path, i)
			d.places[p.Key()] = place{path: itemPath, line: item.Line, keyLine: item.Line}
			out[i] = d.convert(item, p, itemPath)
		}
		return out
	case yaml.AliasNode:
		d.Fault(at, "is an alias of %q; aliases are not accepted, write the value out", node.Value)
		return nil
	default:
		return d.convertScalar(node, at)
	}
}

func (d *document) convertMapping(node *yaml.Node, at pointer, path string) any {
	out := map[string]any{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			d.faults = append(d.faults, Fault{File: d.name, Line: key.Line, Path: display(path), Message: "has a key that is not text; write a name"})
			continue
		}
		p, childPath := at.To(key.Value), join(path, key.Value)
		if first, twice := d.places[p.Key()]; twice {
			d.faults = append(d.faults, Fault{File: d.name, Line: key.Line, Path: childPath,
				Message: fmt.Sprintf("duplicate key; it is already on line %d, keep one of them", first.keyLine)})
			continue
		}
		line := key.Line
		if value.Kind == yaml.ScalarNode {
			line = value.Line
		}
		d.places[p.Key()] = place{path: childPath, line: line, keyLine: key.Line}
		out[key.Value] = d.convert(value, p, childPath)
	}
	return out
}

func (d *document) convertScalar(node *yaml.Node, at pointer) any {
	var err error
	switch node.ShortTag() {
	case "!!null":
		return nil
	case "!!str", "!!timestamp":
		return node.Value
	case "!!bool":
		var v bool
		if err = node.Decode(&v); err == nil {
			return v
		}
	case "!!int":
		var v int64
		if err = node.Decode(&v); err == nil {
			return v
		}
	case "!!float":
		// JSON has no NaN and no infinity. convert returns such a number as text, so validation refuses
		// it where a number is required.
		var v float64
		if err = node.Decode(&v); err == nil {
			if v-v != 0 {
				return node.Value
			}
			return v
		}
	default:
		return d.tagged(node, at)
	}
	d.Fault(at, "cannot be read as a number, or as true or false; quote it if it is text") // not quoted: the value may be a password of digits
	return nil
}

func (d *document) tagged(node *yaml.Node, at pointer) any {
	d.Fault(at, "has a tag; tags are not accepted, write the bare value, or put a value that begins with ! into quotes")
	return nil
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func join(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return fmt.Sprintf("%s[%q]", path, key)
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

func display(path string) string {
	if path == "" {
		return documentPath
	}
	return path
}
