package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"drydock.dev/drydock/internal/config/section"
)

// maxFileBytes is also the limit of a ConfigMap.
const maxFileBytes = 1 << 20

// documentPath is the Fault.Path of faults about the whole document.
const documentPath = "document"

type document struct {
	name string
	tree any
	// places is keyed by the value's pointer.Key.
	places map[string]place
	faults []Fault
	// at has the keys of the pointers that have a fault. A value gets no further fault if it or one of
	// its parents has one.
	at map[string]bool
}

type place struct {
	path          string
	line, keyLine int
}

type pointer = section.Pointer

// parse makes errors faults of the document. The tree is nil if the data cannot be used at all.
// root is the path of the document's root in faults, and empty for a whole configuration.
func parse(name string, data []byte, root string) *document {
	d := &document{name: name, places: map[string]place{}, at: map[string]bool{}}
	d.places[""] = place{path: root, line: 1, keyLine: 1}
	if len(data) > maxFileBytes {
		d.whole(1, "is larger than %d bytes; check that this file is a configuration, which is far smaller", maxFileBytes)
		return d
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var node yaml.Node
	switch err := decoder.Decode(&node); {
	case errors.Is(err, io.EOF) || err == nil && isEmpty(&node):
		d.whole(1, "is empty; write at least apiVersion, kind, receiver and alertmanager")
		return d
	case err != nil:
		d.syntax(err)
		return d
	}
	d.tree = d.convert(node.Content[0], nil, root)
	var next yaml.Node
	switch err := decoder.Decode(&next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		d.syntax(err)
	default:
		d.whole(max(next.Line, 1), "is not the only document in the file; write one document")
	}
	return d
}

func isEmpty(n *yaml.Node) bool {
	return n.Kind != yaml.DocumentNode || len(n.Content) == 0 || n.Content[0].ShortTag() == "!!null"
}

var (
	yamlLine      = regexp.MustCompile(`^(?:yaml: )?line ([0-9]+): (.*)$`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor `)
)

func (d *document) syntax(err error) {
	line, message := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = m[2]
	}
	if unknownAnchor.MatchString(message) { // the anchor's name may be a password that begins with *
		message = "the alias has no anchor; if the value is text that begins with *, put it into quotes"
	}
	d.whole(line, "is not YAML: %s", message)
}

// whole does not suppress later faults of the document's values.
func (d *document) whole(line int, format string, args ...any) {
	d.faults = append(d.faults, Fault{File: d.name, Line: line, Path: documentPath, Message: fmt.Sprintf(format, args...)})
}

// Fault does nothing if the value or one of its parents already has a fault.
func (d *document) Fault(p pointer, format string, args ...any) {
	if d.Faulty(p) {
		return
	}
	d.at[p.Key()] = true
	d.faults = append(d.faults, d.locate(p, false, fmt.Sprintf(format, args...)))
}

// Faulty reports whether the value at p, or one of its parents, has a fault.
func (d *document) Faulty(p pointer) bool {
	for i := len(p); i >= 0; i-- {
		if d.at[p[:i].Key()] {
			return true
		}
	}
	return false
}

func (d *document) locate(p pointer, warning bool, message string) Fault {
	known := len(p)
	for ; known > 0; known-- {
		if _, ok := d.places[p[:known].Key()]; ok {
			break
		}
	}
	at := d.places[p[:known].Key()]
	path := at.path
	for _, token := range p[known:] {
		path = join(path, token)
	}
	return Fault{File: d.name, Line: at.line, Path: display(path), Message: message, Warning: warning}
}

func (d *document) value(p pointer) any {
	v := d.tree
	for _, token := range p {
		switch parent := v.(type) {
		case map[string]any:
			v = parent[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(parent) {
				return nil
			}
			v = parent[i]
		default:
			return nil
		}
	}
	return v
}

// drop removes the value at p, so that it is decoded as the zero value.
func (d *document) drop(p pointer) {
	if len(p) == 0 {
		d.tree = nil
		return
	}
	last := p[len(p)-1]
	switch parent := d.value(p[:len(p)-1]).(type) {
	case map[string]any:
		delete(parent, last)
	case []any:
		if i, err := strconv.Atoi(last); err == nil && i >= 0 && i < len(parent) {
			parent[i] = nil
		}
	}
}
