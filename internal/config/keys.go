package config

import (
	"fmt"
	"slices"
)

// Key is one key of the configuration with its documentation.
type Key struct {
	// Path is the key's path as in faults, but without indexes: policies[].plan[].wait.
	Path     string
	Type     string
	Default  string
	Required bool
	// HasKeys reports that the key has keys below it. They follow in the list of Keys.
	HasKeys     bool
	Description string
}

// Keys returns every key of the configuration, in the order of the schema.
func Keys() []Key { return loadSchema().root.keys("") }

func (s *schema) keys(path string) []Key {
	var out []Key
	for _, p := range s.properties {
		k := Key{
			Path: join(path, p.name), Type: p.kind(), Default: p.defaultText(),
			Required: slices.Contains(s.required, p.name), Description: p.description,
		}
		for _, c := range s.conditions {
			for _, conditional := range c.then.properties {
				if conditional.name == p.name {
					k.Default = fmt.Sprintf("%s%s for %v", separated(k.Default), conditional.defaultText(), c.value)
				}
			}
		}
		child, childPath := p.schema, k.Path
		if p.items != nil {
			child, childPath = p.items, k.Path+"[]"
		}
		k.HasKeys = len(child.properties) > 0
		out = append(out, k)
		out = append(out, child.keys(childPath)...)
	}
	return out
}

func separated(text string) string {
	if text == "" {
		return ""
	}
	return text + ", "
}

func (s *schema) defaultText() string {
	switch {
	case s.fallbackFrom != "":
		return "the value of " + s.fallbackFrom
	case s.fallback == nil || len(s.properties) > 0:
		return ""
	default:
		return flow(decoded[any](s.fallback))
	}
}

func (s *schema) kind() string {
	switch {
	case s.constant != nil:
		return fmt.Sprint(s.constant)
	case len(s.enum) > 0:
		words := make([]string, len(s.enum))
		for i, v := range s.enum {
			words[i] = fmt.Sprint(v)
		}
		return alternatives(words)
	case s.items != nil:
		if len(s.items.properties) > 0 && s.title != "" {
			return s.title
		}
		if len(s.items.properties) > 0 {
			return "a list of mappings"
		}
		return "a list, each " + s.items.kind()
	case s.maximum != "" && s.title == "":
		return fmt.Sprintf("%s from %s to %s", s.noun(), s.minimum, s.maximum)
	default:
		return s.noun()
	}
}

func alternatives(words []string) string {
	if len(words) < 2 {
		return list(words)
	}
	return list(words[:len(words)-1]) + " or " + words[len(words)-1]
}
